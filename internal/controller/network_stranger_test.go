package controller_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	outsider "github.com/cldmnky/oooi/internal/testkit/stranger"
)

// invader is a stranger to the network of a world's c1, who tries one way.
type invader struct {
	*world
	input.Neighbour
	wrote string // all that he wrote himself
}

// invaders are one for each way, each in a namespace of his own.
func (w *world) invaders() map[string]*invader {
	w.t.Helper()
	vlan := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), there)
	ground := outsider.Ground{Namespace: w.ns, Cluster: "c1", ControlPlane: w.controlPlane("c1"), Network: vlan.Name, Alike: w.ns + "s"}
	all := map[string]*invader{}
	for i, way := range slices.Sorted(maps.Keys(ground.Ways(w.t))) {
		ground.Own = fmt.Sprint(w.ns, "-s", i)
		v := &invader{world: w, Neighbour: ground.Neighbour(vlan)}
		ground.Ways(w.t)[way](&v.Neighbour)
		all[way] = v
		w.t.Cleanup(func() { w.removesAllOf(v.Infra.Namespace) }) // the next test on this API server would see it written
	}
	return all
}

// newer says whether the invader's Infra must be made after the victim's, by the API server's clock.
func (v *invader) newer() bool { return v.Infra.CreationTimestamp == outsider.After }

// comes writes all of the invader's objects, and what an administrator wrote for him.
func (v *invader) comes() {
	v.t.Helper()
	status := v.Infra.Status
	v.Infra.UID, v.Infra.CreationTimestamp = "", metav1.Time{}
	v.completesInfra()
	v.writes(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.Infra.Namespace}}, v.Infra)
	for name, child := range v.Children {
		child.SetNamespace(v.Infra.Namespace)
		child.SetName(names.Child(v.Infra.Name, string(name)))
		for i := range child.GetOwnerReferences() {
			child.GetOwnerReferences()[i].UID = v.Infra.UID
		}
		v.completes(child)
		v.writes(child)
	}
	if len(status.Addresses)+len(status.Endpoints)+len(status.Conditions) == 0 {
		return
	}
	for i := range status.Conditions {
		status.Conditions[i].Reason, status.Conditions[i].LastTransitionTime = "Forged", metav1.Now()
	}
	for i := range status.Endpoints {
		status.Endpoints[i].Port = 6443
	}
	v.reports(v.Infra, func() { v.Infra.Status = status })
}

// completes fills in what the schema requires, so that nothing else is the reason of a refusal.
func (v *invader) completes(child component.Server) {
	at := v1alpha1.Attachment{NetworkAttachmentDefinition: v1alpha1.ObjectName(v.NAD.Name), NetworkAttachmentNamespace: v1alpha1.ObjectName(v.NAD.Namespace)}
	switch s := child.(type) {
	case *v1alpha1.DHCPServer:
		s.Spec.NetworkConfig.Attachment, s.Spec.NetworkConfig.CIDR = at, "192.168.100.0/24"
		if s.Spec.UnknownClients == v1alpha1.UnknownClientsIgnore {
			s.Spec.VMNamespace = v1alpha1.ObjectName(v.Infra.Namespace)
		}
		s.Spec.LeaseConfig.LeaseTime = metav1.Duration{Duration: 24 * time.Hour}
	case *v1alpha1.DNSServer:
		s.Spec.NetworkConfig.Attachment, s.Spec.NetworkConfig.SecondaryNetworkCIDR, s.Spec.HostedClusterDomain = at, "192.168.100.0/24", "c9.example.com"
		s.Spec.CacheTTL = metav1.Duration{Duration: time.Hour}
	case *v1alpha1.ProxyServer:
		s.Spec.NetworkConfig.Attachment = at
		s.Spec.Backends = []v1alpha1.ProxyBackend{{
			Name: "api", Port: 6443, Protocol: v1alpha1.ProtocolTLS, CatchAll: true, TargetService: "web", TargetPort: 6443, TargetNamespace: v1alpha1.ObjectName(v.Infra.Namespace),
		}}
	}
}

// completesInfra does so for the Infra.
func (v *invader) completesInfra() {
	spec := &v.Infra.Spec
	if len(spec.NetworkConfig.ClientCIDRs) > 0 {
		spec.NetworkConfig.Gateway = "192.168.100.253"
	}
	if spec.HostedClusterRef == nil {
		spec.InfraComponents.DNS.ClusterName, spec.InfraComponents.DNS.BaseDomain = "c9", "example.com"
	}
	for i := range spec.ExtraEndpoints {
		spec.ExtraEndpoints[i].Protocol, spec.ExtraEndpoints[i].Target = v1alpha1.ProtocolTLS, v1alpha1.EndpointTarget{Service: "web", Port: 6443}
	}
}

func (v *invader) writes(objects ...client.Object) {
	v.t.Helper()
	for _, o := range objects {
		text, err := json.Marshal(o)
		v.Expect(err).NotTo(HaveOccurred())
		v.wrote += string(text)
		v.Expect(v.api.Create(v.ctx, o)).To(Succeed(), "%T of %s", o, v.Infra.Namespace)
	}
}

// hears checks that the invader is refused, and is told nothing of the victim that he did not write himself.
func (v *invader) hears() {
	v.t.Helper()
	infra := sees(v.world, v.Infra, func(g Gomega, i *v1alpha1.Infra) {
		c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionAccepted)
		g.Expect(c).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "RefNotPermitted"))))
	})
	told := fmt.Sprint(infra.Status.Conditions, infra.Status.Addresses)
	for _, list := range []client.ObjectList{&v1alpha1.DHCPServerList{}, &v1alpha1.DNSServerList{}, &v1alpha1.ProxyServerList{}} {
		v.Expect(v.api.List(v.ctx, list, client.InNamespace(infra.Namespace))).To(Succeed())
		for _, o := range items(list) {
			text, err := json.Marshal(o)
			v.Expect(err).NotTo(HaveOccurred())
			told += string(text)
		}
	}
	events := &eventsv1.EventList{}
	v.Expect(v.api.List(v.ctx, events, client.InNamespace(infra.Namespace))).To(Succeed())
	for _, e := range events.Items {
		told += e.Note
	}
	told = strings.ReplaceAll(told, v.ns+"/"+v.NAD.Name, "") // the network that he names himself
	for _, word := range []string{published["c1"], v.controlPlane("c1"), v.ns + "/c1"} {
		v.Expect(strings.Contains(told, word) && !strings.Contains(v.wrote, word)).To(BeFalse(), "%s in %s", word, told)
	}
}

// serves is all of c1 that its workers use, and its status.
func (w *world) serves() map[string]string {
	w.t.Helper()
	dhcp, dns, proxy := named(&v1alpha1.DHCPServer{}, w.ns, names.DHCPServer("c1")), named(&v1alpha1.DNSServer{}, w.ns, names.DNSServer("c1")), named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer("c1"))
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	said := []string{}
	for _, c := range infra.Status.Conditions {
		said = append(said, fmt.Sprint(c.Type, c.Status, c.Reason, c.Message))
	}
	sees(w, dns, there).Spec.InternalEntries = nil // a new Service has another cluster IP
	all := map[string]string{}
	for what, is := range map[string]any{
		"dhcp": sees(w, dhcp, there).Spec, "dns": dns.Spec, "proxy": sees(w, proxy, there).Spec,
		"addresses": infra.Status.Addresses, "endpoints": infra.Status.Endpoints, "conditions": said,
	} {
		text, err := json.Marshal(is)
		w.Expect(err).NotTo(HaveOccurred())
		all[what] = string(text)
	}
	return all
}

// The ways of internal/plan's TestAStrangerToANetworkChangesNothing, through an API server and all at once: before the victim's objects exist,
// and while it serves.
func TestStrangersToANetworkChangeNothingThroughTheAPIServer(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.silent()
	alone, victim := w.serves(), named(&v1alpha1.Infra{}, w.ns, "c1")
	w.Expect(w.api.Delete(w.ctx, victim)).To(Succeed())
	w.gone(victim)

	all := w.invaders()
	w.Expect(all).To(HaveLen(55))
	network := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), there)
	w.changes(network, func() { network.Annotations = all["a copied network"].NAD.Annotations })
	for _, v := range all {
		if !v.newer() {
			v.comes()
		}
	}
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.silent()
	w.Expect(w.serves()).To(Equal(alone), "made after them")
	for _, v := range all {
		if v.newer() {
			v.comes()
		}
	}
	for _, v := range all {
		v.hears()
	}
	w.silent()
	w.Expect(w.serves()).To(Equal(alone), "before them")
}
