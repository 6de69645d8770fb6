package main

import (
	"fmt"
	"net/http"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
)

// manyAddresses are those of card 0's Node, each compared with the requested ones; other Nodes have fewAddresses. The latter change, since
// an object of more than 64 KiB waits for its turn, and its cluster with it.
const manyAddresses, fewAddresses = 4000, 200

// numbers from one up to, but not including, another.
func numbers(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func host(card int) string { return fmt.Sprintf("evil-%d", card) }

// named is an object with nothing but its name.
func named(i, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":"o%d","namespace":"n","resourceVersion":"%d"}}`, i, version)
}

// service has another address in each version. The addresses are short, because what is kept is counted as JSON.
func (e *evil) service(i, version int) string {
	s := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("s%d", i), Namespace: "openshift-ingress", ResourceVersion: fmt.Sprint(version),
			Labels: map[string]string{names.LabelInfra: "evil3", names.LabelInfraNamespace: objects.Namespace},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: fmt.Sprintf("172.31.%d.%d", i/250, i%250), Ports: []corev1.ServicePort{{Port: 443}}},
	}
	each := int(e.each.Load())
	for a := range each - 2 { // the ClusterIP and the changing one are two more
		at := i*each + a
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("2::%x:%x", (at>>16)+1, at&0xffff))
	}
	if each > 1 {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("3::%x", version&0xffff))
	}
	return text(s)
}

// nodeOf is the Node of the ith card. Its kubelet is away, so it may bootstrap again. It has another address in each version.
func (e *evil) nodeOf(i, version int) string {
	card := e.cards[i]
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: host(card), ResourceVersion: fmt.Sprint(version)},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}},
	}
	count := fewAddresses
	if card == 0 {
		count = manyAddresses
	}
	for i := range count - 1 {
		n.Status.Addresses = append(n.Status.Addresses, internal(addressOf(card, i)))
	}
	n.Status.Addresses = append(n.Status.Addresses, internal(fmt.Sprintf("12.%d.%d.%d", card, version>>8&0xff, version&0xff)))
	return text(n)
}

// addressOf is the ith address of a card's Node.
func addressOf(card, i int) string { return fmt.Sprintf("11.%d.%d.%d", card, i/250, 1+i%250) }

func internal(address string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address}
}

// node answers a request for one Node.
func (e *evil) node(out *sayer, r *http.Request) {
	for i, card := range e.cards[:e.joined] {
		if r.PathValue("name") == host(card) {
			out.say(e.nodeOf(i, 1))
			return
		}
	}
	out.refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
}

// lease was renewed long ago, except that of card 0: the watch allows what reading refuses.
func lease(out *sayer, r *http.Request) {
	renewed := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	if r.PathValue("name") == host(0) {
		renewed = metav1.NowMicro()
	}
	out.say(text(coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("name")}, Spec: coordination.LeaseSpec{RenewTime: &renewed}}))
}
