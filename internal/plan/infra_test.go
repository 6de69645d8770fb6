package plan_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func everyCase(t testing.TB) map[string]render.Objects {
	t.Helper()
	files, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	all := map[string]render.Objects{}
	for _, f := range files {
		all[filepath.Base(filepath.Dir(f))] = load(t, f)
	}
	return all
}

func TestPlanningChangesNothingAndSaysTheSameTwice(t *testing.T) {
	for name, objects := range everyCase(t) {
		for i, in := range objects.Inputs(settings()) {
			before := load(t, "testdata/"+name+"/in.yaml").Inputs(settings())[i]
			first, second := plan.Infra(in), plan.Infra(in)
			if diff := cmp.Diff(golden.YAML(t, before), golden.YAML(t, in)); diff != "" {
				t.Errorf("%s: planning changed its input:\n%s", name, diff)
			}
			if diff := cmp.Diff(texts(t, first), texts(t, second)); diff != "" {
				t.Errorf("%s: a second plan differs:\n%s", name, diff)
			}
		}
	}
}

func texts(t *testing.T, p plan.InfraPlan) []string {
	all := []string{golden.YAML(t, p.Findings), golden.YAML(t, p.Addresses), golden.YAML(t, p.Endpoints)}
	for _, o := range p.Objects {
		all = append(all, golden.YAML(t, o))
	}
	return all
}

func TestAFrozenPlanWantsNothingAndSaysWhy(t *testing.T) {
	g := NewWithT(t)
	for name, objects := range everyCase(t) {
		for _, in := range objects.Inputs(settings()) {
			p := plan.Infra(in)
			if p.Frozen {
				g.Expect(p.Objects).To(BeEmpty(), name)
				g.Expect(p.Findings).NotTo(BeEmpty(), name)
			} else if len(p.Off) < 3 {
				g.Expect(p.Objects).NotTo(BeEmpty(), name)
			}
		}
	}
}

func TestAFrozenPlanSaysWhatIsOff(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"nad-is-missing", "another-namespace-not-permitted", "hosted-cluster-is-missing", "image-override"} {
		in := load(t, "testdata/"+name+"/in.yaml").Inputs(settings())[0]
		g.Expect(plan.Infra(in).Off).To(BeEmpty(), name)
		in.Infra.Spec.InfraComponents.DHCP.Enabled, in.Infra.Spec.InfraComponents.Proxy.Enabled = ptr.To(false), ptr.To(false)
		p := plan.Infra(in)
		g.Expect(p.Frozen).To(BeTrue(), name)
		g.Expect(p.Off).To(Equal([]string{names.DHCP, names.Proxy}), name)
	}
}

// The next plan, made with the children of the first, is the same: addresses do not move.
func TestThePlanOfWhatWasAppliedIsTheSame(t *testing.T) {
	for name, objects := range everyCase(t) {
		for i, in := range objects.Inputs(settings()) {
			first := plan.Infra(in)
			if first.Frozen || in.Children.Proxy() != nil {
				continue
			}
			again := append(render.Objects{}, objects...)
			again = append(again, readBack(t, first.Objects)...)
			second := plan.Infra(again.Inputs(settings())[i])
			if diff := cmp.Diff(texts(t, first), texts(t, second)); diff != "" {
				t.Errorf("%s: the plan changes once it is applied:\n%s", name, diff)
			}
		}
	}
}

func readBack(t *testing.T, applied []runtime.ApplyConfiguration) render.Objects {
	t.Helper()
	var text strings.Builder
	if err := render.YAML(&text, applied); err != nil {
		t.Fatal(err)
	}
	objects, err := render.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// If a range is no longer written, the pool grows to the end of the network, around what a newer Infra already leases.
func TestAPoolGrowsAroundWhatANewerInfraLeases(t *testing.T) {
	g := NewWithT(t)
	objects := load(t, "testdata/two-infras-each-serving-its-own/in.yaml")
	newer := plan.Infra(objects.Inputs(settings())[1])
	objects = append(objects, readBack(t, newer.Objects)...)
	for range 2 { // the second plan reads the children of the first
		older := plan.Infra(objects.Inputs(settings())[0])
		g.Expect(older.Frozen).To(BeFalse(), "%v", older.Findings)
		server := golden.YAML(t, older.Objects)
		g.Expect(server).To(ContainSubstring("rangeEnd: 192.168.100.254"))
		g.Expect(server).To(ContainSubstring("end: 192.168.100.254\n      start: 192.168.100.151"))
		objects = append(readBack(t, older.Objects), objects...)
	}
}

// The older Infra's servers have 192.168.100.21 to .23, and its pool is .100 to .150; with one instance of each, its two spares are the lowest free
// addresses.
func TestAnOlderInfrasSpareAddressesAreNotTaken(t *testing.T) {
	g := NewWithT(t)
	objects := load(t, "testdata/two-infras-each-serving-its-own/in.yaml")
	for _, o := range objects {
		if infra, is := o.(*v1alpha1.Infra); is && infra.Name == "c1" {
			infra.Spec.InfraComponents.DHCP.Replicas, infra.Spec.InfraComponents.DNS.Replicas, infra.Spec.InfraComponents.Proxy.Replicas = 1, 1, 1
		}
	}
	newer := plan.Infra(objects.Inputs(settings())[1])
	var at []string
	for _, a := range newer.Addresses {
		at = append(at, string(a.IP))
	}
	g.Expect(at).To(Equal([]string{"192.168.100.4", "192.168.100.7", "192.168.100.5", "192.168.100.8", "192.168.100.6", "192.168.100.9"}), "the older one keeps .1 to .3")
	g.Expect(golden.YAML(t, newer.Objects)).To(ContainSubstring("rangeStart: 192.168.100.10"))
}

func TestTwoClustersInOneNamespaceNeverMeet(t *testing.T) {
	g := NewWithT(t)
	objects := load(t, "testdata/two-clusters-in-one-namespace/in.yaml")
	for _, in := range objects.Inputs(settings()) {
		mine, other := in.Infra.Name, map[string]string{"c1": "c2", "c2": "c1"}[in.Infra.Name]
		p := plan.Infra(in)
		g.Expect(p.Frozen).To(BeFalse(), "%s: %v", mine, p.Findings)
		for _, text := range texts(t, p) {
			g.Expect(text).NotTo(MatchRegexp(`\b`+other+`\b`), "%s's plan names %s", mine, other)
		}
	}
}

func BenchmarkInfra(b *testing.B) {
	in := load(b, "testdata/loadbalancer-without-hostname/in.yaml").Inputs(settings())[0]
	for b.Loop() {
		if plan.Infra(in).Frozen {
			b.Fatal("held")
		}
	}
}
