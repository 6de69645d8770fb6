package kept

import (
	"reflect"
	"time"
)

// Octets is the memory that a value takes with all that it refers to. The size of its JSON does not tell: {} may become a struct of hundreds.
func Octets(of any) int { return whole(reflect.ValueOf(of)) }

func whole(v reflect.Value) int { return int(v.Type().Size()) + beyond(v) }

var clock = reflect.TypeFor[time.Time]() // its Location is shared

// beyond is the memory of what a value refers to, without the value itself.
func beyond(v reflect.Value) (octets int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return whole(v.Elem())
		}
	case reflect.Slice:
		return v.Cap()*int(v.Type().Elem().Size()) + elements(v)
	case reflect.Array:
		return elements(v)
	case reflect.Map:
		return entries(v)
	case reflect.Struct:
		for i := 0; i < v.NumField() && v.Type() != clock; i++ {
			octets += beyond(v.Field(i))
		}
	}
	return octets
}

func elements(v reflect.Value) (octets int) {
	if kind := v.Type().Elem().Kind(); kind >= reflect.Bool && kind <= reflect.Complex128 {
		return 0
	}
	for i := range v.Len() {
		octets += beyond(v.Index(i))
	}
	return octets
}

// entries is the memory of a map's slots: at least eight, and twice its length when it has just grown (internal/runtime/maps).
func entries(v reflect.Value) (octets int) {
	if v.IsNil() {
		return 0
	}
	octets = max(8, 2*v.Len()) * int(v.Type().Key().Size()+v.Type().Elem().Size())
	for all := v.MapRange(); all.Next(); {
		octets += beyond(all.Key()) + beyond(all.Value())
	}
	return octets
}
