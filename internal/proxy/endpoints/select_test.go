package endpoints

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// A pod, by its address and state.
func pod(address string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "c1", Name: "at-" + address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
}

// named finds pods that have, by their own status, the address in their name.
func named(name string) *corev1.Pod {
	address, _ := strings.CutPrefix(name, "at-")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: address}}}
	switch address {
	case "none":
		return nil
	case "10.0.0.98":
		pod.Status.Phase = corev1.PodSucceeded
	case "10.0.0.99":
		pod.Status.Phase = corev1.PodFailed
	}
	return pod
}

// by another name.
func by(name string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) { e.TargetRef.Name = name }
}

func ready(address string) discoveryv1.Endpoint    { return pod(address, true, true, false) }
func starting(address string) discoveryv1.Endpoint { return pod(address, false, false, false) }
func leaving(address string) discoveryv1.Endpoint  { return pod(address, false, true, true) }
func ending(address string) discoveryv1.Endpoint   { return pod(address, false, false, true) }

func changed(e discoveryv1.Endpoint, change func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	change(&e)
	return e
}

func sliceOf(family discoveryv1.AddressType, portName string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "c1"},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		Endpoints:   endpoints,
	}
}

func v4(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return sliceOf(discoveryv1.AddressTypeIPv4, "https", 8443, endpoints...)
}

func TestOnlyPodsOfTheServicesNamespaceAreDialled(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "ignition"}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443}, {Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP}}
	for name, c := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		"ready pods": {[]*discoveryv1.EndpointSlice{v4(ready("10.0.0.2"), ready("10.0.0.1"), starting("10.0.0.3"))}, []string{"10.0.0.1:8443", "10.0.0.2:8443"}},
		"both families": {[]*discoveryv1.EndpointSlice{v4(ready("10.0.0.1")), sliceOf(discoveryv1.AddressTypeIPv6, "https", 8443, ready("fd00::1"))},
			[]string{"10.0.0.1:8443", "[fd00::1]:8443"}},
		"one pod in two slices":           {[]*discoveryv1.EndpointSlice{v4(ready("10.0.0.1")), v4(ready("10.0.0.1"))}, []string{"10.0.0.1:8443"}},
		"a leaving pod beside a ready":    {[]*discoveryv1.EndpointSlice{v4(ready("10.0.0.1"), leaving("10.0.0.2"))}, []string{"10.0.0.1:8443"}},
		"only a leaving pod":              {[]*discoveryv1.EndpointSlice{v4(leaving("10.0.0.2"), ending("10.0.0.3"))}, []string{"10.0.0.2:8443"}},
		"conditions that nobody set":      {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), func(e *discoveryv1.Endpoint) { e.Conditions.Ready = nil }))}, []string{"10.0.0.1:8443"}},
		"another port of the service":     {[]*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeIPv4, "metrics", 9090, ready("10.0.0.1"))}, nil},
		"a bare address":                  {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), func(e *discoveryv1.Endpoint) { e.TargetRef = nil }))}, nil},
		"a pod of another namespace":      {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), func(e *discoveryv1.Endpoint) { e.TargetRef.Namespace = "other" }))}, nil},
		"a node":                          {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), func(e *discoveryv1.Endpoint) { e.TargetRef.Kind = "Node" }))}, nil},
		"loopback dressed up as a pod":    {[]*discoveryv1.EndpointSlice{v4(ready("127.0.0.1"))}, nil},
		"metadata dressed up as a pod":    {[]*discoveryv1.EndpointSlice{v4(ready("169.254.169.254"))}, nil},
		"an address that the pod has not": {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), by("at-10.0.0.2")))}, nil},
		"a pod that there is none":        {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), by("at-none")))}, nil},
		"no pod's name":                   {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), by("")))}, nil},
		"one of a pod's and another's":    {[]*discoveryv1.EndpointSlice{v4(changed(ready("10.0.0.1"), func(e *discoveryv1.Endpoint) { e.Addresses = append(e.Addresses, "10.0.0.2") }))}, []string{"10.0.0.1:8443"}},
		"a pod that has ended":            {[]*discoveryv1.EndpointSlice{v4(ready("10.0.0.98"), ready("10.0.0.99"))}, nil},
		"a name":                          {[]*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeFQDN, "https", 8443, ready("10.0.0.1"))}, nil},
		"something that is no address":    {[]*discoveryv1.EndpointSlice{v4(ready("example.com"))}, nil},
		"a port of another protocol":      {[]*discoveryv1.EndpointSlice{withProtocol(v4(ready("10.0.0.1")), corev1.ProtocolUDP)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Of(service, c.slices, named, 443)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(texts(got)).To(Equal(c.want))
		})
	}
}

func TestAServiceThatCannotBeDialledSaysWhy(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "ignition"}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	_, err := Of(service, nil, named, 443)
	NewWithT(t).Expect(err).To(MatchError("service c1/ignition has no TCP port 443"))
	_, err = Of(service, nil, named, 53)
	NewWithT(t).Expect(err).To(MatchError("service c1/ignition has no TCP port 53"))
	service.Spec.Ports = []corev1.ServicePort{{Port: 443}}
	service.Spec.Type = corev1.ServiceTypeExternalName
	_, err = Of(service, []*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeIPv4, "", 443, ready("10.0.0.1"))}, named, 443)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is an ExternalName")))
}

func withProtocol(s *discoveryv1.EndpointSlice, p corev1.Protocol) *discoveryv1.EndpointSlice {
	s.Ports[0].Protocol = ptr.To(p)
	return s
}

func texts(targets []netip.AddrPort) (all []string) {
	for _, target := range targets {
		all = append(all, target.String())
	}
	return all
}

// Who writes EndpointSlices chooses no port that the Service does not have, and gives Envoy no more to check than it can.
func TestASliceChoosesNeitherPortNorNumber(t *testing.T) {
	g := NewWithT(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "api"}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 443, TargetPort: intstr.FromInt32(6443)}}
	kubelet, api := sliceOf(discoveryv1.AddressTypeIPv4, "client", 10250, ready("10.0.0.1")), sliceOf(discoveryv1.AddressTypeIPv4, "client", 6443, ready("10.0.0.1"))
	found, err := Of(service, []*discoveryv1.EndpointSlice{kubelet, api}, named, 443)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveExactElements(netip.MustParseAddrPort("10.0.0.1:6443")))

	service.Spec.Ports[0].TargetPort = intstr.FromString("https")
	var many []*discoveryv1.EndpointSlice
	for port := range int32(1000) {
		many = append(many, sliceOf(discoveryv1.AddressTypeIPv4, "client", 1+port, ready("10.0.0.1")))
	}
	found, err = Of(service, many, named, 443)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(mostTargets))
}
