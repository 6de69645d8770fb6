package plan_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/render"
)

// A network in a control-plane namespace may be used by that control plane's Infra, and not by others that name the namespace.
func TestWhoIsOnANetworkOfAControlPlanesNamespace(t *testing.T) {
	const ours = `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters, uid: ours, creationTimestamp: "2026-11-02T00:00:00Z"}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan100, namespace: clusters}
spec: {config: '{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br100"}'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan100, namespace: a-b-c}
spec: {config: '{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br100"}'}
---
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c, namespace: a-b}
---
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedControlPlane
metadata: {name: c, namespace: a-b-c, annotations: {hypershift.openshift.io/cluster: a-b/c}}
---
`
	infra := func(namespace, spec string) string {
		return `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: x, namespace: ` + namespace + `, uid: theirs, creationTimestamp: "2026-11-01T00:00:00Z"}
spec:
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100, networkAttachmentNamespace: a-b-c}
  ` + spec + "\n---\n"
	}
	hostedCluster := func(namespace, name string) string {
		return "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n---\n"
	}
	for name, c := range map[string]struct {
		objects string
		counts  bool
	}{
		"its own":                           {infra("a-b", "hostedClusterRef: {name: c}"), true},
		"its own, by the namespace":         {infra("a-b", "infraComponents: {proxy: {controlPlaneNamespace: a-b-c}}"), true},
		"another's HostedCluster":           {infra("tenant", "hostedClusterRef: {name: c, namespace: a-b}"), false},
		"another's namespace":               {infra("tenant", "infraComponents: {proxy: {controlPlaneNamespace: a-b-c}}"), false},
		"a HostedCluster of the same words": {infra("a", "hostedClusterRef: {name: b-c}") + hostedCluster("a", "b-c"), false},
		"one that is not there":             {infra("a", "hostedClusterRef: {name: b-c}"), false},
		"its own HostedCluster, and the namespace of another's": {
			infra("tenant", "hostedClusterRef: {name: x}\n  infraComponents: {proxy: {controlPlaneNamespace: a-b-c}}") + hostedCluster("tenant", "x"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render.Read(strings.NewReader(ours + c.objects))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			inUse := HaveField("Reason", "VLANInUse")
			if found := plan.Infra(objects.Inputs(settings())[0]).Findings; c.counts {
				g.Expect(found).To(ContainElement(inUse))
			} else {
				g.Expect(found).NotTo(ContainElement(inUse))
			}
		})
	}
}
