package controller_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// trespasser writes what he may in his own namespace, and aims at the control plane of a world's c1.
type trespasser struct {
	*world
	own    string
	victim *v1alpha1.Infra
}

// infra makes the trespasser's Infra: the smallest one, as changed.
func (s trespasser) infra(change func(*v1alpha1.Infra)) {
	s.t.Helper()
	infra := s.smallest("c1")
	infra.Namespace = s.own
	change(infra)
	if infra.Spec.HostedClusterRef == nil {
		infra.Spec.InfraComponents.DNS.ClusterName, infra.Spec.InfraComponents.DNS.BaseDomain = "c9", "example.com"
	}
	s.creates(infra)
}

// proxy makes a ProxyServer by hand, whose backend is in the victim's control plane.
func (s trespasser) proxy(change func(*v1alpha1.ProxyServer)) {
	s.t.Helper()
	p := &v1alpha1.ProxyServer{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "c1-proxy"}}
	p.Spec.NetworkConfig = v1alpha1.ProxyNetworkConfig{ServerIP: "192.168.100.7", Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "c1-vlan"}}
	p.Spec.Backends = []v1alpha1.ProxyBackend{{
		Name: "api", Port: 6443, Protocol: v1alpha1.ProtocolTLS, CatchAll: true, TargetService: "kube-apiserver", TargetPort: 6443, TargetNamespace: v1alpha1.ObjectName(s.controlPlane("c1")),
	}}
	change(p)
	s.creates(p)
}

// his makes a HostedCluster in the trespasser's namespace.
func (s trespasser) his(name string) *hyperv1.HostedCluster {
	hc := sees(s.world, named(&hyperv1.HostedCluster{}, s.ns, "c1"), there).DeepCopy()
	withoutIdentity(hc)
	hc.Namespace, hc.Name = s.own, name
	s.creates(hc)
	return hc
}

// trespasses are ways to another's control plane, by name.
var trespasses = map[string]func(s trespasser){
	"its HostedCluster": func(s trespasser) {
		s.infra(func(i *v1alpha1.Infra) { i.Spec.HostedClusterRef.Namespace = v1alpha1.ObjectName(s.ns) })
	},
	"its namespace, and no HostedCluster": func(s trespasser) {
		s.infra(func(i *v1alpha1.Infra) {
			i.Spec.HostedClusterRef, i.Spec.InfraComponents.Proxy.ControlPlaneNamespace = nil, v1alpha1.ObjectName(s.controlPlane("c1"))
		})
	},
	"its namespace, for a HostedCluster of his": func(s trespasser) {
		s.his("c1")
		s.infra(func(i *v1alpha1.Infra) {
			i.Spec.InfraComponents.Proxy.ControlPlaneNamespace = v1alpha1.ObjectName(s.controlPlane("c1"))
		})
	},
	"its namespace, with a control plane of his that says so": func(s trespasser) {
		hc := s.his("c1")
		hc.Namespace = s.ns
		s.makesControlPlane(hc, s.own)
		s.infra(func(i *v1alpha1.Infra) {
			i.Spec.HostedClusterRef, i.Spec.InfraComponents.Proxy.ControlPlaneNamespace = nil, v1alpha1.ObjectName(s.own)
		})
	},
	"a Service there, as another endpoint": func(s trespasser) {
		s.his("c1")
		s.infra(func(i *v1alpha1.Infra) {
			i.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "e", Hostnames: []v1alpha1.DNSNameOrWildcard{"e.example.com"}, Port: 7443, Protocol: v1alpha1.ProtocolTLS,
				Target: v1alpha1.EndpointTarget{Service: "kube-apiserver", Namespace: v1alpha1.ObjectName(s.controlPlane("c1")), Port: 6443}}}
		})
	},
	"a network there": func(s trespasser) {
		s.his("c1")
		s.infra(func(i *v1alpha1.Infra) {
			i.Spec.NetworkConfig.NetworkAttachmentNamespace = v1alpha1.ObjectName(s.controlPlane("c1"))
		})
	},
	"a proxy by hand": func(s trespasser) { s.proxy(func(*v1alpha1.ProxyServer) {}) },
	"a proxy with the labels of the Infra": func(s trespasser) {
		s.proxy(func(p *v1alpha1.ProxyServer) {
			p.Labels = map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: s.ns, names.LabelOwnerUID: string(s.victim.UID), names.LabelManagedBy: names.ManagedBy}
		})
	},
	"a proxy that the Infra owns": func(s trespasser) {
		s.proxy(func(p *v1alpha1.ProxyServer) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Infra", Name: "c1", UID: s.victim.UID, Controller: ptr.To(true)}}
		})
	},
	"a proxy that an Infra of his owns, which is refused": func(s trespasser) {
		s.infra(func(i *v1alpha1.Infra) { i.Spec.HostedClusterRef.Namespace = v1alpha1.ObjectName(s.ns) })
		own := sees(s.world, named(&v1alpha1.Infra{}, s.own, "c1"), there)
		s.proxy(func(p *v1alpha1.ProxyServer) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Infra", Name: "c1", UID: own.UID, Controller: ptr.To(true)}}
		})
	},
	"a name of his for its Service": func(s trespasser) {
		s.creates(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "kube-apiserver"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "kube-apiserver." + s.controlPlane("c1") + ".svc", Ports: []corev1.ServicePort{{Port: 6443}},
		}})
		s.proxy(func(p *v1alpha1.ProxyServer) {
			p.Spec.Backends[0].TargetNamespace = v1alpha1.ObjectName(s.controlPlane("c1"))
		})
	},
	"a template that a proxy had": func(s trespasser) {
		s.proxy(func(p *v1alpha1.ProxyServer) {
			p.Annotations = map[string]string{names.AnnotationAllowedNamespaces: s.controlPlane("c1"), names.AnnotationHostedCluster: s.ns + "/c1"}
		})
	},
	"a HostedCluster whose annotation names its network": func(s trespasser) {
		s.his("c1")
		hc := named(&hyperv1.HostedCluster{}, s.own, "c1")
		s.changes(hc, func() {
			hc.Annotations = map[string]string{names.AnnotationInfra: names.InfraAuto, names.AnnotationNetworkAttachment: s.controlPlane("c1") + "/c1-vlan", names.AnnotationHostedCluster: s.ns + "/c1"}
		})
	},
	"a slice of its Service, in his namespace": func(s trespasser) {
		s.creates(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "x", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-apiserver"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.controlPlane("c1"), Name: "kube-apiserver-0"}}}})
		s.proxy(func(*v1alpha1.ProxyServer) {})
	},
}

// None of these ways gives a stranger a permission in another's control plane, or an accepted Infra or child; the victim serves as before, and
// nobody is told its addresses.
func TestATrespasserGetsNothingOfAControlPlane(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	vlan := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), there)
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Settled")
	victim, served := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there).DeepCopy(), w.serves()
	machine, vm := w.machine("c1", "vm")
	begun := time.Now().Truncate(time.Second)
	lease := w.getsAddress(w.ns, "192.168.100.120", vm, begun)
	var owns []string
	i := 0
	for way, does := range trespasses {
		s := trespasser{w, fmt.Sprintf("%s-t%d", w.ns, i), victim}
		i++
		own := vlan.DeepCopy()
		withoutIdentity(own)
		own.Namespace, own.Spec.Config = s.own, `{"cniVersion":"0.3.1","name":"vlan","type":"bridge","bridge":"`+s.own+`"}`
		w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.own}}, own)
		t.Cleanup(func() { w.removesAllOf(s.own) })
		t.Logf("%s: %s", s.own, way)
		does(s)
		w.getsAddress(s.own, "192.168.100.120", vm, begun)
		owns = append(owns, s.own)
	}
	w.joins(machine, begun, begun, "True")
	w.silent()
	sees(w, lease, func(g Gomega, l *v1alpha1.DHCPLease) { g.Expect(became(l)).To(BeTemporally("==", begun)) })
	w.Expect(w.serves()).To(Equal(served))
	for _, own := range owns {
		for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}} {
			w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.controlPlane("c1")), client.MatchingLabels{names.LabelInfraNamespace: own})).To(Succeed())
			w.Expect(items(list)).To(BeEmpty(), own)
		}
		sees(w, named(&v1alpha1.DHCPLease{}, own, lease.Name), func(g Gomega, l *v1alpha1.DHCPLease) {
			g.Expect(became(l)).To(BeZero(), "when another's machine joined")
		})
		all := &v1alpha1.ProxyServerList{}
		w.Expect(w.api.List(w.ctx, all, client.InNamespace(own))).To(Succeed())
		for _, p := range all.Items {
			w.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionAccepted), HaveField("Status", metav1.ConditionFalse))), own)
		}
		told := ""
		infras, events := &v1alpha1.InfraList{}, &eventsv1.EventList{}
		w.Expect(w.api.List(w.ctx, infras, client.InNamespace(own))).To(Succeed())
		w.Expect(w.api.List(w.ctx, events, client.InNamespace(own))).To(Succeed())
		for _, infra := range infras.Items {
			told += fmt.Sprint(infra.Status)
		}
		for _, e := range events.Items {
			told += e.Note
		}
		w.Expect(told).NotTo(ContainSubstring(published["c1"]), own)
	}
}
