package render

import (
	"net/netip"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/dpu"
)

// Bridge is what files say about a DPUHCPBridge and its DPUs.
type Bridge struct {
	bridge.Input
	DPUs  []dpf.DPU
	Facts dpu.Facts
}

// everywhere: files do not have the networks whose addresses the operator lets bridges announce.
var everywhere = bridge.Settings{VirtualIPs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}

// Bridges are what the files say about each bridge, in their order.
func (o Objects) Bridges() (all []Bridge) {
	o = o.asKept()
	bridges := pick[dpuv1.DPUHCPBridge](o, "")
	for _, b := range bridges {
		key := named(b.Namespace, b.Name)
		seen := Bridge{Facts: o.dpuFacts(bridge.DeploymentKey(b)), Input: bridge.Input{
			Settings: everywhere, Bridge: b, Served: bridge.Served{DPF: true, HyperShift: true, MetalLB: true},
			Exists:        func(uid types.UID) bool { return exists(bridges, uid) },
			DPUCluster:    find[dpf.DPUCluster](o, bridge.ClusterKey(b)),
			HostedCluster: find[hyperv1.HostedCluster](o, key), NodePool: find[hyperv1.NodePool](o, key),
			Namespace: find[corev1.Namespace](o, named("", bridge.ControlPlane(b))),
		}}
		for _, other := range bridges {
			if other != b && bridge.Rivals(b, other) {
				seen.Rivals = append(seen.Rivals, bridge.Rival{DPUHCPBridge: other, HostedCluster: find[hyperv1.HostedCluster](o, named(other.Namespace, other.Name))})
			}
		}
		for _, hc := range pick[hyperv1.HostedCluster](o, "") {
			if hc != seen.HostedCluster && endpoint.ControlPlaneNamespace(hc) == bridge.ControlPlane(b) {
				seen.Neighbours = append(seen.Neighbours, hc)
			}
		}
		for _, d := range pick[dpf.DPU](o, "") {
			if d.Joins(bridge.ClusterKey(b)) {
				seen.DPUs = append(seen.DPUs, *d)
			}
		}
		all = append(all, seen)
	}
	return all
}

func exists(bridges []*dpuv1.DPUHCPBridge, uid types.UID) bool {
	return slices.ContainsFunc(bridges, func(b *dpuv1.DPUHCPBridge) bool { return b.UID == uid })
}

func (o Objects) dpuFacts(deployment types.NamespacedName) dpu.Facts {
	return dpu.Facts{
		Configs: values(pick[dpf.DPFOperatorConfig](o, "")), Templates: values(pick[corev1.ConfigMap](o, "")), Flavors: values(pick[dpf.DPUFlavor](o, "")),
		Deployment: find[dpf.DPUDeployment](o, deployment), Nodes: values(pick[dpf.DPUNode](o, "")),
	}
}
