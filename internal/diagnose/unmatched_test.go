package diagnose

import (
	"cmp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// What is printed to be pasted is an Infra's YAML. Of a name that no endpoint can have there is none.
func TestANameIsAdmittedByWhatIsPrinted(t *testing.T) {
	for _, u := range []Unmatched{{Name: "registry.corp.example.com", Port: 5000}, {Name: strings.Repeat("a.", 19) + "example.com"}, {Name: "1.5"}, {Name: "true"}, {Name: "null"}} {
		g, infra := NewWithT(t), v1alpha1.Infra{}
		g.Expect(yaml.UnmarshalStrict([]byte(u.Admits()), &infra)).To(Succeed())
		g.Expect(infra.Spec.ExtraEndpoints).To(HaveLen(1))
		e := infra.Spec.ExtraEndpoints[0]
		g.Expect(e.Hostnames).To(ConsistOf(v1alpha1.DNSNameOrWildcard(u.Name)))
		g.Expect(e.Port).To(BeEquivalentTo(cmp.Or(u.Port, 443)))
		g.Expect(e.Protocol).To(Equal(v1alpha1.ProtocolTLS))
		g.Expect(e.Name).To(MatchRegexp("^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"))
		g.Expect(string(e.Target.Service)).To(Equal("NAME"), "the schema refuses it until somebody says which")
	}
	for _, name := range []string{"", "_x.example.com", "*", "a: b", "a\nb", "a]"} {
		NewWithT(t).Expect(Unmatched{Name: name, Port: 443}.Admits()).To(BeEmpty(), "%q", name)
	}
}

// Once a worker has sent a server name that no backend has, it is told how the proxy takes it: of the worker, and once of its Infra.
func TestAWorkerThatSentAnUnmatchedNameIsToldHowItIsAdmitted(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.Proxy.Is.Status.UnmatchedNames = []v1alpha1.UnmatchedName{
		{Name: "registry.example.com", Port: 5000, LastTime: metav1.NewTime(ago(10 * time.Minute))}, {Name: "_x", Port: 443, LastTime: metav1.NewTime(ago(time.Minute))}}
	g.Expect(at(f, "proxy").YAML).To(BeEmpty(), "no worker sent one")
	g.Expect(Infra(f)).To(HaveEach(HaveField("YAML", BeEmpty())))

	f.Leases.Is[0].Status = v1alpha1.DHCPLeaseStatus{Client: "52:54:00:00:01:01", Stages: []v1alpha1.Stage{{Name: v1alpha1.StageUnmatchedHello, FirstTime: metav1.NewMicroTime(ago(29 * time.Minute)), ServerName: "time.example.com"}}}
	want := And(HaveField("Name", "proxy"), HaveField("Outcome", step.OK), HaveField("YAML", Unmatched{Name: "registry.example.com", Port: 5000}.Admits()),
		HaveField("Says", HaveSuffix("for: _x (port 443, 2026-11-27 11:59Z), registry.example.com (port 5000, 2026-11-27 11:50Z), time.example.com. If workers need one, add it to the Infra, here the first; target says where it leads:")))
	g.Expect(at(f, "proxy")).To(want)
	g.Expect(Infra(f)).To(ContainElement(want))
	absent(&f)
	told := 0
	for _, s := range Infra(f) {
		if s.YAML != "" {
			told++
		}
	}
	g.Expect(told).To(Equal(1), "of the Infra, and not again of each worker")
	breaks(&f, "ProxyReady", "PodNotReady")
	g.Expect(at(f, "proxy").YAML).To(BeEmpty(), "what is broken comes first")
}
