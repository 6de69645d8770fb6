package finding_test

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/finding"
)

func TestAValueOfAnotherTypeIsToldInTheWordsOfYAML(t *testing.T) {
	for want, c := range map[string]struct {
		has   string
		takes any
	}{
		"f is text, and takes a whole number; write it without quotes":                             {"string", 0},
		"f is a number 1.5, and takes a whole number":                                              {"number 1.5", new(int32)},
		"f is a number, and takes text; write it in quotes":                                        {"number", ""},
		"f is an object, and takes text; a | after its colon makes text of the lines below it":     {"object", ""},
		"f is text, and takes a list; write it in [ ]":                                             {"string", []string{}},
		"f is text, and takes an object; write its fields below it, and in a list below each item": {"string", struct{}{}},
		"f is an object, and takes a list":                                                         {"object", []string{}},
		"f is a list, and takes an object":                                                         {"array", struct{}{}},
		"f is true or false, and takes an object":                                                  {"bool", map[string]string{}},
		"f is text, and takes true or false":                                                       {"string", new(bool)},
	} {
		NewWithT(t).Expect(finding.Mistyped("f", c.has, reflect.TypeOf(c.takes))).To(MatchError(want))
	}
}
