package workload

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
)

func proxyReferences(s *v1alpha1.ProxyServer) References {
	refs := References{Attachment: s.Spec.NetworkConfig.Attachment}
	for _, b := range s.Spec.Backends {
		refs.Namespaces = append(refs.Namespaces, string(b.TargetNamespace))
	}
	services, addresses := targets(s.Spec)
	refs.Services, refs.Addresses = slices.Collect(maps.Keys(services)), addresses
	return refs
}

// Proxy plans one ProxyServer.
func Proxy(in Child[*v1alpha1.ProxyServer]) ChildPlan {
	spec := in.Server.Spec
	p, stop := judged(slices.Concat(permission.ImageOverrides(in.Settings, permission.WrittenImages(in.Server)),
		notAllowed(spec, admittedTo(in)), in.references(spec.NetworkConfig.Attachment, backendNamespaces(spec))))
	p.Lost, p.LostLater = in.lost()
	if stop {
		return p
	}
	all := proxyWorkloads(in)
	w := all[0]
	newest := bootstrap.Template(w.namespace(), w.name())
	chosen := chooseEach(&p, all, func(w workload) *accore.PodTemplateSpecApplyConfiguration { return w.proxy(in.Settings, newest) }, w.proxyRules(spec)...)

	p.Want(w.account(rulesOfAll(chosen)...)...)
	onPods := podPorts(spec)
	if len(onPods) > 0 {
		p.Want(w.proxyService(onPods))
	}
	p.Want(w.policy(reaching(in.Services, in.EndpointSlices).backends(in), policyPortsTCP(onPods)...), w.budget())
	for i, instance := range all {
		config := newest
		if has := in.instances()[instance.Instance].Bootstrap; chosen[i].reads(has) {
			config = has
		}
		p.Want(instance.bootstrap(config), instance.replaced(chosen[i]))
	}
	return p
}

// proxyWorkloads are those of all instances. The first one's pod has the captured addresses too, with the full length.
func proxyWorkloads(in Child[*v1alpha1.ProxyServer]) []workload {
	spec, network := in.Server.Spec, ""
	if in.Infra != nil {
		network = string(in.Infra.Spec.NetworkConfig.CIDR)
	}
	var captured []netip.Prefix
	for _, c := range spec.NetworkConfig.CapturedAddresses {
		captured = append(captured, within(string(c.IP), ""))
	}
	all := workloadsOf(in, serverIPs(in.Server, network), spec.Placement, spec.ManagerImage, captured...)
	for i := range all {
		all[i].EnvoyImage = spec.ProxyImage
	}
	return all
}

// bootstrap is the ConfigMap with Envoy's bootstrap for one instance: its sidecar is known to understand the one of its own release only.
func (w workload) bootstrap(config string) runtime.ApplyConfiguration {
	return accore.ConfigMap(names.EnvoyBootstrap(w.name(), w.Instance), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).
		WithData(map[string]string{BootstrapKey: config})
}

// admittedTo are the networks that an administrator has opened and, for the proxy of an Infra, its VLAN.
func admittedTo(in Child[*v1alpha1.ProxyServer]) []netip.Prefix {
	all := in.Settings.ExtraEndpointCIDRs
	cidr, on := vlanOf(in)
	if !on {
		return all
	}
	return append(all[:len(all):len(all)], cidr)
}

// notAllowed refuses addresses in other networks: the author of a ProxyServer can reach all that its pod can.
func notAllowed(spec v1alpha1.ProxyServerSpec, allowed []netip.Prefix) []finding.Finding {
	var all []finding.Finding
	for _, b := range spec.Backends {
		for _, target := range b.TargetAddresses {
			if a, err := netip.ParseAddrPort(target); err != nil || !endpoint.Allows(allowed, a.Addr()) {
				all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "AddressNotAllowed").
					Say("backends[%s].targetAddresses has %s, which lies outside the operator's --extra-endpoint-cidrs; ask the administrator to add its network, or set targetService", b.Name, target))
			}
		}
	}
	return all
}

// backendNamespaces are the targets' namespaces by the field that names them.
func backendNamespaces(spec v1alpha1.ProxyServerSpec) map[string]v1alpha1.ObjectName {
	targets := map[string]v1alpha1.ObjectName{}
	for _, b := range spec.Backends {
		if b.TargetNamespace != "" {
			targets[fmt.Sprintf("backends[%s].targetNamespace", b.Name)] = b.TargetNamespace
		}
	}
	return targets
}

// reads says whether a kept template came with this bootstrap, the only one that its sidecar is known to understand.
func (r chosenTemplate) reads(config string) bool {
	return r.kept && r.template.Annotations[names.AnnotationBootstrap] == desired.Digest(config)
}

// replaced is a Deployment whose old pod ends before the new one starts. Unlike a StatefulSet, it replaces its pod when a node is lost.
func (w workload) replaced(r chosenTemplate) runtime.ApplyConfiguration {
	return acapps.Deployment(names.InstanceWorkload(w.App, w.name(), w.Instance), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).WithAnnotations(r.annotations).
		WithSpec(acapps.DeploymentSpec().WithReplicas(1).WithRevisionHistoryLimit(2).
			WithStrategy(acapps.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithSelector(acmeta.LabelSelector().WithMatchLabels(w.instance())).WithTemplate(r.template))
}

// proxyRules let the sidecar watch targets in its own namespace; in others, the Infra grants that.
func (w workload) proxyRules(spec v1alpha1.ProxyServerSpec) []*acrbac.PolicyRuleApplyConfiguration {
	rules := append(w.ownObject(), desired.TellingStages()...)
	if slices.ContainsFunc(spec.Backends, func(b v1alpha1.ProxyBackend) bool { return string(b.TargetNamespace) == w.namespace() }) {
		rules = append(rules, desired.Reading("", "services", "pods"), desired.Reading("discovery.k8s.io", "endpointslices"))
	}
	return rules
}

// podPorts are the ports that are served on the pod network too.
func podPorts(spec v1alpha1.ProxyServerSpec) []int32 {
	var all []int32
	for _, b := range spec.Backends {
		if b.Views == v1alpha1.ViewVLANAndPods {
			all = append(all, int32(b.Port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w workload) proxyService(ports []int32) runtime.ApplyConfiguration {
	var all []*accore.ServicePortApplyConfiguration
	for _, number := range ports {
		all = append(all, desired.ServicePort(fmt.Sprintf("tcp-%d", number), corev1.ProtocolTCP, number))
	}
	return w.service(all...)
}

func policyPortsTCP(ports []int32) []*acnetworking.NetworkPolicyPortApplyConfiguration {
	var all []*acnetworking.NetworkPolicyPortApplyConfiguration
	for _, number := range ports {
		all = append(all, policyPort(corev1.ProtocolTCP, number))
	}
	return all
}
