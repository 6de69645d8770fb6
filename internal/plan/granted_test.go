package plan_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/render"
)

// HyperShift puts HostedClusters a/b-c and a-b/c into one namespace, a-b-c. Objects in files may have no creation time yet.
func TestAnInfraGetsNoControlPlaneOfAnother(t *testing.T) {
	const (
		first, later, earlier = `, creationTimestamp: "2026-11-02T00:00:00Z", uid: m`, `, creationTimestamp: "2026-11-02T00:00:01Z", uid: a`, `, creationTimestamp: "2026-11-01T00:00:00Z", uid: z`
		tieWon, tieLost       = `, creationTimestamp: "2026-11-02T00:00:00Z", uid: a`, `, creationTimestamp: "2026-11-02T00:00:00Z", uid: z`
	)
	hostedCluster := func(namespace, name, made string) string {
		return "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: " + name + ", namespace: " + namespace + made + "}\n---\n"
	}
	controlPlaneOf := func(namespace, name string) string {
		return "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedControlPlane\nmetadata: {name: " + name + ", namespace: a-b-c, annotations: {hypershift.openshift.io/cluster: " + namespace + "/" + name + "}}\n---\n"
	}
	byReference := `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: x, namespace: a-b}
spec:
  hostedClusterRef: {name: c}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100}
---
`
	byNamespace := strings.Replace(byReference, "hostedClusterRef: {name: c}", "infraComponents: {proxy: {controlPlaneNamespace: a-b-c}}", 1)
	// The message says nothing of the other HostedCluster, whether it runs or not.
	says := Equal("namespace a-b-c has no control plane of HostedCluster a-b/c, or was another's first: wait until HyperShift has made it, or give one of the two another name")
	unheard := HavePrefix("proxy.controlPlaneNamespace names namespace a-b-c, which does not exist or does not allow namespace a-b;")
	saying := map[string]OmegaMatcher{"by reference": says, "by namespace": Or(says, unheard)}
	for form, infra := range map[string]string{"by reference": byReference, "by namespace": byNamespace} {
		for name, c := range map[string]struct {
			others  string
			refused bool
		}{
			"alone":                                      {"", false},
			"one made later":                             {hostedCluster("a", "b-c", later), false},
			"one made later, with a dot":                 {hostedCluster("a", "b.c", later), false},
			"one yet to be made":                         {hostedCluster("a", "b-c", ""), false},
			"one made later, and running":                {hostedCluster("a", "b-c", later) + controlPlaneOf("a", "b-c") + controlPlaneOf("a-b", "c"), false},
			"one made before":                            {hostedCluster("a", "b-c", earlier), true},
			"one made before, with a dot":                {hostedCluster("a", "b.c", earlier), true},
			"one made before, ours running":              {hostedCluster("a", "b-c", earlier) + controlPlaneOf("a-b", "c"), true},
			"one made before, both running":              {controlPlaneOf("a-b", "c") + controlPlaneOf("a", "b-c") + hostedCluster("a", "b-c", earlier), true},
			"one of the same second that wins":           {hostedCluster("a", "b-c", tieWon), true},
			"one of the same second that does not":       {hostedCluster("a", "b-c", tieLost), false},
			"none but another's running":                 {controlPlaneOf("a", "b-c"), true},
			"one made before, in a namespace of its own": {hostedCluster("a", "b-d", earlier) + hostedCluster("a-b", "d", earlier), false},
		} {
			t.Run(form+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				objects, err := render.Read(strings.NewReader(c.others + hostedCluster("a-b", "c", first) + infra))
				g.Expect(err).NotTo(HaveOccurred())
				refused := permission.Check(objects.Inputs(settings())[0])
				if !c.refused {
					g.Expect(refused).To(BeEmpty())
					return
				}
				g.Expect(plan.Infra(objects.Inputs(settings())[0]).Frozen).To(BeTrue())
				g.Expect(refused).To(ConsistOf(And(HaveField("Reason", "RefNotPermitted"), HaveField("Message", saying[form]))))
			})
		}
	}
}
