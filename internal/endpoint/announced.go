package endpoint

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/finding"
)

// Announced are the addresses under which a HostedCluster will publish its control plane, and which no endpoint has yet, so that they are
// judged before HyperShift makes anything. Their ports are not known: they only count while endpoints are awaited, when nothing is applied.
func (t Table) Announced() []Endpoint {
	if len(t.awaited) == 0 || t.of.HostedCluster == nil {
		return nil
	}
	var all []Endpoint
	for _, s := range t.of.services() {
		published, ok := publishedIP(s.ServicePublishingStrategy)
		if !ok || slices.ContainsFunc(append(slices.Clone(t.Endpoints), all...), func(e Endpoint) bool { return slices.Contains(e.PublishedIPs, published) }) {
			continue
		}
		source := fmt.Sprintf("HostedCluster.spec.services[%s].nodePort.address", s.Service)
		all = append(all, Endpoint{Name: string(s.Service), PublishedIPs: []netip.Addr{published}, Source: source})
	}
	return all
}

func publishedIP(s hyperv1.ServicePublishingStrategy) (netip.Addr, bool) {
	if s.Type != hyperv1.NodePort || s.NodePort == nil {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s.NodePort.Address)
	return a.Unmap(), err == nil
}

// nodePortName is the name under which a service is published by its node port; false if that is an address.
func nodePortName(s hyperv1.ServicePublishingStrategy) (string, bool) {
	if _, is := publishedIP(s); is || s.Type != hyperv1.NodePort || s.NodePort == nil || s.NodePort.Address == "" {
		return "", false
	}
	return strings.ToLower(strings.TrimSuffix(s.NodePort.Address, ".")), true
}

// Renamed publishes an IP endpoint under a name of the cluster's domain, which our DNS then answers. spec.services is immutable, so this is
// for a HostedCluster that is created anew.
func (t Table) Renamed(published netip.Addr) []finding.Change {
	hc := t.of.HostedCluster
	if hc == nil {
		return nil
	}
	services := slices.Clone(hc.Spec.Services)
	for i, s := range services {
		switch at, ok := publishedIP(s.ServicePublishingStrategy); {
		case ok && at == published:
			services[i].NodePort = &hyperv1.NodePortPublishingStrategy{Address: "control-plane." + t.of.Domain(), Port: s.NodePort.Port}
		case s.Service == hyperv1.APIServer && t.balanced(s, "api", published):
			services[i].LoadBalancer = &hyperv1.LoadBalancerPublishingStrategy{Hostname: "api." + t.of.Domain()}
		case s.Service == hyperv1.Konnectivity && t.balanced(s, "konnectivity", published):
			services[i].LoadBalancer = &hyperv1.LoadBalancerPublishingStrategy{Hostname: "konnectivity." + t.of.Domain()}
		}
	}
	return []finding.Change{{Of: Object(hc), Values: finding.Values{"spec.services": plain(services)}}}
}

// balanced says whether an endpoint has its address from a load balancer without a hostname.
func (t Table) balanced(s hyperv1.ServicePublishingStrategyMapping, endpoint string, published netip.Addr) bool {
	return s.Type == hyperv1.LoadBalancer && (s.LoadBalancer == nil || s.LoadBalancer.Hostname == "") &&
		slices.ContainsFunc(t.Endpoints, func(e Endpoint) bool { return e.Name == endpoint && slices.Contains(e.PublishedIPs, published) })
}

// plain is a value as JSON has it.
func plain(value any) (out any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("%T is no JSON: %v", value, err))
	}
	return out
}

// Object names a HostedCluster in a finding; the zero object when there is none.
func Object(hc *hyperv1.HostedCluster) finding.Object {
	if hc == nil {
		return finding.Object{}
	}
	return ObjectNamed(hc.Namespace, hc.Name)
}

// ObjectNamed names a HostedCluster by namespace and name.
func ObjectNamed(namespace, name string) finding.Object {
	return finding.Object{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Namespace: namespace, Name: name}
}
