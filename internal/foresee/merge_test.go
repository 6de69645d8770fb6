package foresee

import (
	"testing"

	. "github.com/onsi/gomega"
)

// A change of a plan is made to the live object; what the plan does not say, the schema's defaults among it, stays.
func TestAChangeIsMadeToTheLiveObject(t *testing.T) {
	for name, c := range map[string][4]string{
		"nothing changes":               {`{"a":1}`, `{"a":1}`, `{"a":2,"d":0}`, `{"a":2,"d":0}`},
		"a value changes":               {`{"a":1}`, `{"a":3}`, `{"a":1,"d":0}`, `{"a":3,"d":0}`},
		"a field goes":                  {`{"a":1,"b":1}`, `{"a":1}`, `{"a":1,"b":1,"d":0}`, `{"a":1,"d":0}`},
		"a field comes":                 {`{"a":1}`, `{"a":1,"b":1}`, `{"a":1,"d":0}`, `{"a":1,"b":1,"d":0}`},
		"there was no plan":             {``, `{"a":3}`, `{"a":1,"d":0}`, `{"a":3,"d":0}`},
		"there was no object":           {``, `{"a":[{"name":"x"}]}`, `{}`, `{"a":[{"name":"x"}]}`},
		"an entry keeps its defaults":   {`{"l":[{"a":1},{"a":2}]}`, `{"l":[{"a":2}]}`, `{"l":[{"a":1,"d":0},{"a":2,"d":0}]}`, `{"l":[{"a":2,"d":0}]}`},
		"an entry changes, by its name": {`{"l":[{"name":"x","a":1}]}`, `{"l":[{"name":"y"},{"name":"x","a":2}]}`, `{"l":[{"name":"x","a":1,"d":0}]}`, `{"l":[{"name":"y"},{"a":2,"d":0,"name":"x"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := merged([]byte(c[0]), []byte(c[1]), []byte(c[2]))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(is).To(MatchJSON(c[3]))
		})
	}
}
