package apps

import (
	"cmp"

	operatorv1 "github.com/openshift/api/operator/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// publishing is how the hosted cluster publishes its routers, and which field of which object says so; zero if none does.
type publishing struct {
	operatorv1.EndpointPublishingStrategy
	of    finding.Object
	field string
}

var ingressObject = finding.Object{APIVersion: operatorv1.GroupVersion.String(), Kind: "IngressController", Namespace: input.RouterIngress.Namespace, Name: input.RouterIngress.Name}

// routers is how the hosted cluster's IngressController publishes them; until we have read that, how HyperShift will create it, which it
// does once, and then leaves it to that cluster's administrator (hostedclusterconfigoperator, controllers/resources/ingress/reconcile.go).
func (a *publisher) routers() publishing {
	if a.Guest != nil && a.Guest.Ingress != nil {
		return publishing{*a.Guest.Ingress, ingressObject, "spec.endpointPublishingStrategy"}
	}
	hc := a.HostedCluster
	if hc == nil {
		return publishing{}
	}
	if o := hc.Spec.OperatorConfiguration; o != nil && o.IngressOperator != nil && o.IngressOperator.EndpointPublishingStrategy != nil {
		return publishing{*o.IngressOperator.EndpointPublishingStrategy, endpoint.Object(hc), "spec.operatorConfiguration.ingressOperator.endpointPublishingStrategy"}
	}
	if hc.Spec.Platform.Type == hyperv1.NonePlatform {
		return publishing{operatorv1.EndpointPublishingStrategy{Type: operatorv1.HostNetworkStrategyType}, endpoint.Object(hc), "spec.platform.type"}
	}
	return publishing{}
}

// mode is the one that reaches routers that are published so; our Service reaches all others.
func (p publishing) mode() v1alpha1.AppsIngressMode {
	switch p.Type {
	case operatorv1.HostNetworkStrategyType:
		return v1alpha1.AppsHostNetwork
	case operatorv1.NodePortServiceStrategyType:
		return v1alpha1.AppsNodePort
	}
	return v1alpha1.AppsLoadBalancer
}

// expectsPROXY is the parameter by which routers accept only connections with the PROXY protocol; empty: they accept all.
func (p publishing) expectsPROXY() string {
	switch {
	case p.HostNetwork != nil && p.HostNetwork.Protocol == operatorv1.ProxyProtocol:
		return "hostNetwork.protocol"
	case p.NodePort != nil && p.NodePort.Protocol == operatorv1.ProxyProtocol:
		return "nodePort.protocol"
	case p.Private != nil && p.Private.Protocol == operatorv1.ProxyProtocol:
		return "private.protocol"
	}
	return ""
}

// mode is the Infra's, or else HostNetwork if the routers listen on the workers' own addresses, or else LoadBalancer. It never chooses
// NodePort, which is HyperShift's default on KubeVirt, also with MetalLB, so that existing Infras do not change. Nor does it give up
// MetalLB's address unless the Infra says so, because DNS that is not ours may have it.
func (a *publisher) mode() v1alpha1.AppsIngressMode {
	mode, p := decidedMode(a.Infra), a.routers()
	switch {
	case mode != "" || p.mode() != v1alpha1.AppsHostNetwork:
		return cmp.Or(mode, v1alpha1.AppsLoadBalancer)
	case a.byMetalLB():
		a.find(warn("ServedByMetalLB", fieldMode), "%s of %s publishes the routers by %s, and *.apps stays at MetalLB's address: set appsIngress.mode: %s to have the proxy's address lead to them, or %s to stay",
			p.field, p.of, p.Type, v1alpha1.AppsHostNetwork, v1alpha1.AppsLoadBalancer)
		return v1alpha1.AppsLoadBalancer
	}
	return v1alpha1.AppsHostNetwork
}

// byMetalLB says whether *.apps has, or last had, an address of MetalLB's; if our DNS is disabled, only the Service tells.
func (a *publisher) byMetalLB() bool {
	return a.before.External() || a.Guest != nil && len(input.ExternalIPs(a.Guest.Service)) > 0
}

// withoutMetalLB is the mode to use without MetalLB.
func (a *publisher) withoutMetalLB() v1alpha1.AppsIngressMode {
	if fits := a.routers().mode(); fits != v1alpha1.AppsLoadBalancer {
		return fits
	}
	return v1alpha1.AppsNodePort
}

// mismatched reports a mode by which the routers are not published, and says whether that is so.
func (a *publisher) mismatched() bool {
	p := a.routers()
	fits := p.mode()
	if p.Type == "" || a.spec.Mode == v1alpha1.AppsLoadBalancer || a.spec.Mode == fits {
		return false
	}
	a.find(fail("RouterPublishingMismatch", fieldMode).Set(finding.Values{fieldMode: fits}),
		"appsIngress.mode is %s, but %s of %s publishes the routers by %s; set appsIngress.mode: %s", a.spec.Mode, p.field, p.of, p.Type, fits)
	return true
}

// spokenTo reports that the routers expect the PROXY protocol, which neither Envoy nor MetalLB sends.
func (a *publisher) spokenTo() {
	p := a.routers()
	parameter := p.expectsPROXY()
	if parameter == "" {
		return
	}
	at := p.field + "." + parameter
	a.find(fail("RouterExpectsPROXY", at).In(p.of).Set(finding.Values{at: string(operatorv1.TCPProtocol)}),
		"the hosted cluster's routers accept only connections with the PROXY protocol, which nothing in front of them sends: set %s of %s to TCP", at, p.of)
}
