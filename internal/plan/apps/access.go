package apps

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// Access says how to connect to the hosted cluster for *.apps.
type Access struct {
	// Secret is the one with the kubeconfig whose credentials are used: HostedCluster.status.kubeconfig. Its name is empty if there is none
	// yet.
	Secret types.NamespacedName
	// Server is what to connect to, https://HOST:PORT, whatever the kubeconfig says: a SAN of its certificate, and open to any pod.
	Server string
	// Service is that of *.apps in the hosted cluster.
	Service types.NamespacedName
	// Mode is the one that the Infra sets; empty: that by which the hosted cluster publishes its routers.
	Mode v1alpha1.AppsIngressMode
}

// ServiceIn names the Service that *.apps has, or may have, in a hosted cluster; false if there is none to look for or to remove, or a
// deleted Infra no longer has our finalizer. HyperShift never removes status.kubeconfig (hostedcluster_controller.go), so if it is empty,
// we have never connected to that cluster.
func ServiceIn(in input.Input) (types.NamespacedName, bool) {
	hc, infra := in.HostedCluster, in.Infra
	letGo := infra.DeletionTimestamp != nil && !slices.Contains(infra.Finalizers, names.Finalizer)
	if !in.Publishes() && infra.Status.AppsIngress == nil || letGo || hc == nil || hc.DeletionTimestamp != nil || hc.Status.KubeConfig == nil {
		return types.NamespacedName{}, false
	}
	s := input.AppsSpec(infra).Service
	return types.NamespacedName{Namespace: string(s.Namespace), Name: cmp.Or(string(s.Name), names.Apps(hc.Name))}, true
}

// AccessTo says how to connect to the hosted cluster; false if ServiceIn is, or a reference grant is missing.
func AccessTo(in input.Input) (Access, bool) {
	service, any := ServiceIn(in)
	if !any || len(permission.Check(in)) > 0 {
		return Access{}, false
	}
	return Access{
		Secret:  types.NamespacedName{Namespace: in.HostedCluster.Namespace, Name: in.HostedCluster.Status.KubeConfig.Name},
		Server:  "https://kube-apiserver." + in.ControlPlaneNamespace() + ".svc:6443",
		Service: service,
		Mode:    decidedMode(in.Infra),
	}, true
}

// decidedMode is the mode that the Infra sets, or LoadBalancer if it configures MetalLB. Empty: it sets none.
func decidedMode(infra *v1alpha1.Infra) v1alpha1.AppsIngressMode {
	switch spec := infra.Spec.AppsIngress; {
	case spec == nil:
		return ""
	case spec.Mode == "" && spec.MetalLB != nil:
		return v1alpha1.AppsLoadBalancer
	default:
		return spec.Mode
	}
}
