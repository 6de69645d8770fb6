package plan_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// settings of an operator on OpenShift with its usual networks.
func settings() input.Settings {
	return input.Settings{
		Image: "example.com/oooi:1", EnvoyImage: "example.com/envoy:1",
		NADSourceNamespaces: []string{"default", "openshift-multus"},
		ExtraEndpointCIDRs:  []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")},
		ClusterDomain:       "cluster.local",
		PodCIDRs:            []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
		ServiceCIDRs:        []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")},
	}
}

func load(t testing.TB, files ...string) render.Objects {
	t.Helper()
	var all render.Objects
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := render.Read(file)
		file.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, objects...)
	}
	return all
}

func TestInfraBecomes(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		var out []string
		for _, in := range load(t, filepath.Join(dir, "in.yaml")).Inputs(settings()) {
			out = append(out, documents(t, in.Infra, plan.Infra(in))...)
		}
		return map[string]string{"out.yaml": strings.Join(out, "---\n")}
	})
}

// documents are a plan in readable form: the status, then every object without the metadata that all share.
func documents(t *testing.T, infra *v1alpha1.Infra, p plan.InfraPlan) []string {
	type said struct {
		Infra     string                     `json:"infra"`
		Frozen    bool                       `json:"frozen"`
		Findings  []string                   `json:"findings,omitempty"`
		Addresses []v1alpha1.AssignedAddress `json:"addresses,omitempty"`
		Endpoints []v1alpha1.EndpointStatus  `json:"endpoints,omitempty"`
	}
	status := said{Infra: infra.Namespace + "/" + infra.Name, Frozen: p.Frozen, Addresses: p.Addresses, Endpoints: p.Endpoints}
	for _, f := range p.Findings {
		status.Findings = append(status.Findings, f.Severity.String()+" "+f.Condition+"/"+f.Reason+": "+f.Message)
	}
	out := []string{golden.YAML(t, status)}
	for _, o := range p.Objects {
		out = append(out, golden.YAML(t, withoutOwnership(t, infra, o)))
	}
	return out
}

// withoutOwnership removes labels and ownerReferences, after checking that they are those that every object must have.
func withoutOwnership(t *testing.T, infra *v1alpha1.Infra, o runtime.ApplyConfiguration) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(golden.YAML(t, o)), &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	g := gomega.NewWithT(t)
	g.Expect(metadata["labels"]).To(gomega.Equal(map[string]any{
		names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace, names.LabelOwnerUID: string(infra.UID), names.LabelManagedBy: names.ManagedBy,
	}))
	if metadata["namespace"] == infra.Namespace {
		g.Expect(metadata["ownerReferences"]).To(gomega.ConsistOf(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Infra", "name": infra.Name, "uid": string(infra.UID), "controller": true, "blockOwnerDeletion": true,
		}))
	} else {
		g.Expect(metadata).NotTo(gomega.HaveKey("ownerReferences"), "an ownerReference cannot cross namespaces: the garbage collector would delete the object")
	}
	delete(metadata, "labels")
	delete(metadata, "ownerReferences")
	return object
}
