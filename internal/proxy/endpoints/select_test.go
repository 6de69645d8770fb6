package endpoints

import (
	"fmt"
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

// pod is the endpoint of a pod with an address and a state.
func pod(address string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "c1", Name: "at-" + address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
}

// byName finds pods whose status has the address in their name; they declare port 8443.
func byName(name string) (*corev1.Pod, bool) {
	address, _ := strings.CutPrefix(name, "at-")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: address}}}
	pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}}}
	switch address {
	case "none":
		return nil, false
	case "10.0.0.98":
		pod.Status.Phase = corev1.PodSucceeded
	case "10.0.0.99":
		pod.Status.Phase = corev1.PodFailed
	}
	return pod, true
}

// by makes an endpoint name another pod.
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
	service.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)}, {Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP}}
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
			got, err := Of(service, c.slices, byName, 443)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(texts(got)).To(Equal(c.want))
		})
	}
}

func TestAServiceThatCannotBeDialledSaysWhy(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "ignition"}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	_, err := Of(service, nil, byName, 443)
	NewWithT(t).Expect(err).To(MatchError("service c1/ignition has no TCP port 443"))
	_, err = Of(service, nil, byName, 53)
	NewWithT(t).Expect(err).To(MatchError("service c1/ignition has no TCP port 53"))
	service.Spec.Ports = []corev1.ServicePort{{Port: 443}}
	service.Spec.Type = corev1.ServiceTypeExternalName
	_, err = Of(service, []*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeIPv4, "", 443, ready("10.0.0.1"))}, byName, 443)
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

// The author of an EndpointSlice can neither choose a port that the Service and the pod lack, nor give Envoy too many targets to check.
func TestASliceChoosesNeitherPortNorNumber(t *testing.T) {
	g := NewWithT(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "api"}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 443, TargetPort: intstr.FromInt32(6443)}}
	kubelet, api := sliceOf(discoveryv1.AddressTypeIPv4, "client", 10250, ready("10.0.0.1")), sliceOf(discoveryv1.AddressTypeIPv4, "client", 6443, ready("10.0.0.1"))
	found, err := Of(service, []*discoveryv1.EndpointSlice{kubelet, api}, byName, 443)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveExactElements(netip.MustParseAddrPort("10.0.0.1:6443")))

	service.Spec.Ports[0].TargetPort = intstr.FromInt32(8443)
	var many []discoveryv1.Endpoint
	for n := range mostTargets + 1 {
		many = append(many, ready(fmt.Sprintf("10.0.%d.%d", 1+n/100, n%100)))
	}
	found, err = Of(service, []*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeIPv4, "client", 8443, many...)}, byName, 443)
	g.Expect(err).To(MatchError("service c1/api has more than 256 pods, of which the proxy dials no more"))
	g.Expect(found).To(HaveLen(mostTargets))
}

// A named port means the number that the pod's container declares. On the host's network a number must be declared too: all others are the
// node's.
func TestAPortIsThatOfThePodsContainer(t *testing.T) {
	container := func(name string, number int32, protocol corev1.Protocol) corev1.Container {
		return corev1.Container{Ports: []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: protocol}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	for name, c := range map[string]struct {
		target  intstr.IntOrString
		spec    corev1.PodSpec
		said    int32 // the port number in the slice
		dialled bool
	}{
		"a word and its number":                  {intstr.FromString("https"), corev1.PodSpec{Containers: []corev1.Container{container("https", 8443, "")}}, 8443, true},
		"a word and another number":              {intstr.FromString("https"), corev1.PodSpec{Containers: []corev1.Container{container("https", 8443, "")}}, 10250, false},
		"a word and a number of another word":    {intstr.FromString("https"), corev1.PodSpec{Containers: []corev1.Container{container("https", 8443, ""), container("debug", 6060, "")}}, 6060, false},
		"a word that no container has":           {intstr.FromString("https"), corev1.PodSpec{Containers: []corev1.Container{container("http", 8080, "")}}, 8443, false},
		"a word of another protocol":             {intstr.FromString("https"), corev1.PodSpec{Containers: []corev1.Container{container("https", 8443, corev1.ProtocolUDP)}}, 8443, false},
		"a word of a sidecar":                    {intstr.FromString("https"), corev1.PodSpec{InitContainers: []corev1.Container{{RestartPolicy: &always, Ports: container("https", 8443, "").Ports}}}, 8443, true},
		"a word of a container that is over":     {intstr.FromString("https"), corev1.PodSpec{InitContainers: []corev1.Container{container("https", 8443, "")}}, 8443, false},
		"a number that nobody declares":          {intstr.FromInt32(8443), corev1.PodSpec{}, 8443, true},
		"on the host, a number that it declares": {intstr.FromInt32(8443), corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container("", 8443, corev1.ProtocolTCP)}}, 8443, true},
		"on the host, the kubelet's":             {intstr.FromInt32(10250), corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container("", 8443, "")}}, 10250, false},
		"on the host, the kubelet's by a word":   {intstr.FromString("https"), corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container("https", 8443, "")}}, 10250, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "api"}}
			service.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 443, TargetPort: c.target}}
			its := func(string) (*corev1.Pod, bool) {
				return pods.part(&corev1.Pod{Spec: c.spec, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}), true
			}
			found, err := Of(service, []*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeIPv4, "client", c.said, ready("10.0.0.1"))}, its, 443)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found != nil).To(Equal(c.dialled))
		})
	}
}
