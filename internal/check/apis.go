package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/plan/vlan"
	"github.com/cldmnky/oooi/internal/step"
)

// oldest minor version of Kubernetes 1 that the CRDs' rules need (README.md).
const oldest = 30

func kubernetes(f Facts) []step.Step {
	parts := strings.SplitN(strings.TrimPrefix(f.Kubernetes, "v"), ".", 3)
	if len(parts) > 1 {
		if minor, err := strconv.Atoi(parts[1]); parts[0] == "1" && err == nil && minor < oldest {
			return one(fail(fmt.Sprintf("upgrade the management cluster to Kubernetes 1.%d or newer", oldest), "Kubernetes is %s, and the operator's CRDs need 1.%d", f.Kubernetes, oldest))
		}
	}
	return one(ok("Kubernetes is %s", f.Kubernetes))
}

// need is what one platform component is needed for.
type need struct {
	// check by whose name Versions has the component's version.
	check string
	// what serves the kinds of a group, and of the groups below it.
	what, group string
	// without is what a cluster that lacks it does without.
	without string
	// because somebody here needs it; empty if nobody does.
	because string
	do      string
}

// of looks for the kinds of a group.
func (n need) of(f Facts) []step.Step {
	if f.APIs.Unread != "" {
		return one(unread(n.what, f.APIs.Unread))
	}
	served, missing, others := n.kinds(f.APIs.Is)
	absent := served == 0 && len(others) == 0
	says := fmt.Sprintf("the API server does not serve %s", strings.Join(missing, ", "))
	switch {
	case len(missing) == 0:
		return one(ok("%s", strings.Join(strings.Fields(n.what+" "+f.Versions[n.check]+" is installed"), " ")))
	case absent && n.because == "":
		return one(skip("%s is not installed: %s", n.what, n.without))
	case absent:
		return one(fail(n.do, "%s is not installed, and %s: %s", n.what, n.because, says))
	case len(others) > 0:
		says += ", only " + strings.Join(others, ", ")
	}
	do := "install a version of " + n.what + " that serves it"
	if n.because == "" {
		return one(warn(do, "%s is of another version or incomplete: %s (%s)", n.what, says, n.without))
	}
	return one(fail(do, "%s is of another version or incomplete, and %s: %s", n.what, n.because, says))
}

func (n need) kinds(all []API) (served int, missing, others []string) {
	for _, api := range all {
		switch {
		case api.Group != n.group && !strings.HasSuffix(api.Group, "."+n.group):
		case api.Served:
			served++
		default:
			missing, others = append(missing, api.Kind+" of "+api.GroupVersion().String()), append(others, api.Others...)
		}
	}
	slices.Sort(others)
	return served, missing, slices.Compact(others)
}

func hyperShift(f Facts) []step.Step {
	return need{
		check: "hypershift", what: "HyperShift", group: "hypershift.openshift.io", because: "hosted control planes are what oooi is for",
		do: "install HyperShift (on OpenShift: multicluster engine)",
	}.of(f)
}

// openShift is only told: where it is, HyperShift publishes by Routes, and networks are read from it.
func openShift(f Facts) []step.Step {
	return need{check: "openshift", what: "OpenShift", group: "config.openshift.io", without: "the management cluster is another Kubernetes"}.of(f)
}

func multus(f Facts) []step.Step {
	n := need{check: "multus", what: "Multus", group: "k8s.cni.cncf.io", without: "bridges need none", do: "install Multus and the CNI plugins static, tuning and sbr"}
	if f.Deployment.Is == nil || f.Manager.VLAN {
		n.because = "an Infra's pods reach the VLAN through it"
	}
	return n.of(f)
}

func kubeVirt(f Facts) []step.Step {
	n := need{check: "kubevirt", what: "KubeVirt", group: "kubevirt.io", without: "needed only for workers that are virtual machines", do: "install OpenShift Virtualization or KubeVirt"}
	if pools := vlan.MachinesOf(f.NodePools.Is); len(pools) > 0 {
		n.because = fmt.Sprintf("NodePool %s/%s has virtual machines", pools[0].Namespace, pools[0].Name)
	}
	return n.of(f)
}

func metalLB(f Facts) []step.Step {
	n := need{check: "metallb", what: "MetalLB", group: "metallb.io", without: "needed only for bridges with metalLBVirtualIP", do: "install MetalLB, or remove metalLBVirtualIP of the bridge"}
	for _, b := range f.Bridges.Is {
		if b.Spec.MetalLBVirtualIP != "" {
			n.because = fmt.Sprintf("DPUHCPBridge %s/%s has metalLBVirtualIP %s", b.Namespace, b.Name, b.Spec.MetalLBVirtualIP)
			break
		}
	}
	return n.of(f)
}

func dpf(f Facts) []step.Step {
	n := need{check: "dpf", what: "DPF", group: "dpu.nvidia.com", without: "needed only for bridges", do: "install NVIDIA's DOCA Platform Framework"}
	if len(f.Bridges.Is) > 0 {
		n.because = fmt.Sprintf("DPUHCPBridge %s/%s connects its DPUs", f.Bridges.Is[0].Namespace, f.Bridges.Is[0].Name)
	}
	return n.of(f)
}

func monitoring(f Facts) []step.Step {
	return need{check: "monitoring", what: "the Prometheus operator", group: "monitoring.coreos.com", without: "needed only for the chart's monitoring.enabled"}.of(f)
}
