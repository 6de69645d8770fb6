package plan_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func TestAHostedClusterAsksFor(t *testing.T) {
	golden.Cases(t, "testdata/provision", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		all := load(t, filepath.Join(dir, "in.yaml")).Provisionings()
		NewWithT(t).Expect(all).To(HaveLen(1))
		before := document(t, all)
		p := plan.Provision(all[0])
		NewWithT(t).Expect(document(t, all)).To(Equal(before), "planning changed its input")
		said := struct {
			Release  bool     `json:"release"`
			Findings []string `json:"findings,omitempty"`
		}{Release: p.Release}
		for _, f := range p.Findings {
			said.Findings = append(said.Findings, f.Outcome.String()+" "+f.Condition+"/"+f.Reason+": "+f.Message)
		}
		out := document(t, said)
		if p.Infra != nil {
			out += "---\n" + document(t, p.Infra)
		}
		return map[string]string{"out.yaml": out}
	})
}
