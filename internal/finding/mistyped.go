package finding

import (
	"fmt"
	"reflect"
	"strings"
)

// Mistyped says in the words of YAML that a field has a value of another type than it takes. has is the value's kind as a JSON decoder
// reports it: for a number, that may include the number.
func Mistyped(field, has string, takes reflect.Type) error {
	kind, _, _ := strings.Cut(has, " ")
	got := map[string]string{"string": text, "number": "a " + has, "bool": "true or false", "array": list, "object": object}[kind]
	for takes.Kind() == reflect.Pointer {
		takes = takes.Elem()
	}
	hint := ""
	switch want := wanted(takes); {
	case want == number && kind == "string":
		hint = "; write it without quotes"
	case want == text && (kind == "number" || kind == "bool"):
		hint = "; write it in quotes"
	case want == text && kind == "object":
		hint = "; a | after its colon makes text of the lines below it"
	case want == object && kind == "string":
		hint = "; write its fields below it, and in a list below each item"
	case want == list && kind == "string":
		hint = "; write it in [ ]"
	}
	return fmt.Errorf("%s is %s, and takes %s%s", field, got, wanted(takes), hint)
}

const (
	text   = "text"
	number = "a whole number"
	list   = "a list"
	object = "an object"
)

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return list
	case reflect.Struct, reflect.Map:
		return object
	}
	return number
}
