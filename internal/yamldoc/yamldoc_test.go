package yamldoc

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestLinesAreThoseOfTheFile(t *testing.T) {
	for text, says := range map[string]string{
		"a: 1\nb: 2\n b: 3\n":                               "error converting YAML to JSON: yaml: line 3: mapping values are not allowed in this context",
		"# a\n---\na: 1\n---\na: 1\nb: 2\n b: 3\n":          "error converting YAML to JSON: yaml: line 7: mapping values are not allowed in this context",
		"---\na: 1\n---\n\n# b\r\na: 1\r\na: 2\nb: 1\nb: 2": "error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"a\" already set in map\n  line 9: key \"b\" already set in map",
	} {
		err := Each([]byte(text), func(_ int, doc []byte) error {
			var into any
			return yaml.UnmarshalStrict(doc, &into)
		})
		NewWithT(t).Expect(err).To(MatchError(says))
	}
	other := errors.New("item 2: line 1: it is no line of the file")
	err := Each([]byte("---\na: 1\n---\nb: 1\n"), func(number int, _ []byte) error {
		if number == 2 {
			return other
		}
		return nil
	})
	NewWithT(t).Expect(err).To(And(MatchError(other), MatchError(other.Error())))
}
