package controller_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

const nodePoolYAML = `
---
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  clusterName: c1
  replicas: 2
  release: {image: "example.com/release:1"}
  management: {upgradeType: Replace}
  platform:
    type: KubeVirt
    kubevirt:
      attachDefaultNetwork: false
      additionalNetworks: [{name: %[3]s}]
      rootVolume: {type: Persistent, persistent: {size: 32Gi}}`

// nodePool of cluster c1 on a network.
func (w *world) nodePool(name, network string) string {
	return strings.TrimPrefix(fmt.Sprintf(nodePoolYAML, w.ns, name, network), "\n---\n")
}

// hostsForAll makes hosted cluster c1 and a NodePool whose only network is c1-vlan.
func (w *world) hostsForAll() {
	w.t.Helper()
	w.hosts("c1")
	w.puts(w.nodePool("c1", w.ns+"/c1-vlan"))
}

// annotates sets a HostedCluster's annotations, key by value; an empty value removes one.
func (w *world) annotates(name string, pairs ...string) {
	w.t.Helper()
	hc := named(&hyperv1.HostedCluster{}, w.ns, name)
	w.changes(hc, func() {
		if hc.Annotations == nil {
			hc.Annotations = map[string]string{}
		}
		for pair := range slices.Chunk(pairs, 2) {
			hc.Annotations[pair[0]] = pair[1]
			if pair[1] == "" {
				delete(hc.Annotations, pair[0])
			}
		}
	})
	w.t.Cleanup(func() { // before the world forgets its Infras, or they would be made again
		w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), hc))).To(Succeed())
	})
}

// told waits until these Events, and no others, report on a HostedCluster.
func (w *world) told(name string, want ...string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		var told []string
		for _, e := range all.Items {
			if e.Regarding.Kind == "HostedCluster" && e.Regarding.Name == name {
				told = append(told, e.Type+" "+e.Reason+": "+e.Note)
				g.Expect(e.Series).To(BeNil(), "told more than once: %s", e.Note)
			}
		}
		g.Expect(told).To(ConsistOf(want))
	}).Should(Succeed())
}

// restored expects that of these objects, and no others, an event on one of the Infra's says that they were changed by somebody else.
func (w *world) restored(about string, objects ...string) {
	w.t.Helper()
	var want []string
	for _, o := range objects {
		want = append(want, o+" was changed or deleted by somebody else, and is restored: change the object that has this event instead")
	}
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		var told []string
		for _, e := range all.Items {
			if e.Reason == "DriftCorrected" && e.Regarding.Kind+" "+e.Regarding.Name == about {
				told = append(told, e.Note)
				g.Expect(e.Series).To(BeNil(), "told more than once: %s", e.Note)
			}
		}
		g.Expect(told).To(ConsistOf(want))
	}).Should(Succeed())
}

func (w *world) madeEvent() string {
	return fmt.Sprintf("Normal InfraCreated: Infra %[1]s/c1 is created for subnet 192.168.0.0/16 of NetworkAttachmentDefinition %[1]s/c1-vlan", w.ns)
}

func TestAnAnnotationAloneMakesAnInfraThatRuns(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(infra.Spec).To(Equal(v1alpha1.InfraSpec{
		HostedClusterRef: &v1alpha1.HostedClusterReference{Name: "c1"},
		NetworkConfig:    v1alpha1.NetworkConfig{CIDR: "192.168.0.0/16", NetworkAttachmentDefinition: "c1-vlan", NetworkAttachmentNamespace: v1alpha1.ObjectName(w.ns)},
	}))
	sees(w, hc, func(_ Gomega, hc *hyperv1.HostedCluster) {
		w.Expect(infra.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: "c1", UID: hc.UID, Controller: ptr.To(true),
		}), "blockOwnerDeletion would need permission on hostedclusters/finalizers")
	})
	w.settled("c1")
	w.told("c1", w.madeEvent())
	before := w.silent()

	// Neither this manager nor the next writes to the HostedCluster, or anything more to the Infra.
	w.Expect(w.calls.written()).NotTo(ContainElement(ContainSubstring("/hostedclusters/")))
	w.annotates("c1", "somebody", "else")
	w.stop()
	w.start()
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())
}

// A HostedCluster that is too large to be kept whole gets no Infra, and is told why, once, until it is smaller.
func TestAHostedClusterThatIsTooLargeAndAsksForAnInfraIsTold(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.swells(named(&hyperv1.HostedCluster{}, w.ns, "c1"), func() {
		w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
		w.Eventually(func(g Gomega) {
			all := &eventsv1.EventList{}
			g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
			g.Expect(all.Items).To(ConsistOf(And(HaveField("Regarding.Kind", "HostedCluster"), HaveField("Reason", "ObjectTooLarge"), HaveField("Type", "Warning"), HaveField("Series", BeNil()))))
		}).Should(Succeed())
		w.silent()
		w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	})
	sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
}

func TestWhatCannotBeDerivedIsAnEventThatNamesTheAnnotation(t *testing.T) {
	w := newWorld(t)
	text := w.hosted("c1")
	const machines = "    machineNetwork: [{cidr: 192.168.0.0/16}]\n"
	w.Expect(text).To(ContainSubstring(machines))
	w.puts(strings.Replace(text, machines, "", 1))
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	set := "kubectl -n " + w.ns + " annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/"
	all := []string{
		"Warning NetworkAttachmentMissing: no NodePool of VirtualMachines in namespace " + w.ns + " has spec.clusterName c1, so the NetworkAttachmentDefinition of the workers' VLAN is not known; set it with: " + set + "network-attachment=NAMESPACE/NAME",
		"Warning CIDRMissing: the VLAN's subnet is not known; these were tried in order: spec.networking.machineNetwork, the subnet in the workers' NetworkAttachmentDefinition, and the one that all Infras on it share; set it with: " + set + "cidr=NETWORK/BITS",
	}
	w.told("c1", all...)

	w.puts(w.nodePool("c1-a", w.ns+"/c1-vlan"))
	w.puts(w.nodePool("c1-b", w.ns+"/c1-storage"))
	all = append(all, fmt.Sprintf("Warning NetworkAttachmentAmbiguous: NodePools with attachDefaultNetwork: false have several networks (%[1]s/c1-storage, %[1]s/c1-vlan), and an Infra serves one; set it with: %[2]snetwork-attachment=NAMESPACE/NAME", w.ns, set))
	w.told("c1", all...)

	w.annotates("c1", names.AnnotationNetworkAttachment, w.ns+"/c1-vlan", names.AnnotationCIDR, "192.168.0.0/16", names.AnnotationGateway, "10.0.0.1")
	all = append(all, `Warning AnnotationInvalid: annotation hostedcluster.densityops.com/gateway is "10.0.0.1": 10.0.0.1 lies outside 192.168.0.0/16; write it as: `+set+`gateway=ADDRESS`)
	w.told("c1", all...)
	w.Expect(w.inventory("c1")).To(BeEmpty())
	w.Expect(client.IgnoreNotFound(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "c1"}, &v1alpha1.Infra{}))).To(Succeed())

	w.annotates("c1", names.AnnotationGateway, "192.168.0.1")
	w.settled("c1")
	w.told("c1", append(all, w.madeEvent())...)

	// The API server's refusal is reported too: a subnet may only widen.
	w.annotates("c1", names.AnnotationCIDR, "192.168.0.0/24")
	w.Eventually(func(g Gomega) {
		events := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, events, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "Rejected"), HaveField("Regarding.Kind", "HostedCluster"), HaveField("Note", ContainSubstring("cidr may only widen")))))
	}).Should(Succeed())
}

func TestAHostedClusterThatChangesIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto, names.AnnotationGateway, "192.168.0.1")
	w.settled("c1")
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")

	w.annotates("c1", names.AnnotationGateway, "", names.AnnotationDNSServers, "192.168.0.53", names.AnnotationDHCPRange, "192.168.1.0-192.168.2.255")
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Spec.NetworkConfig.Gateway).To(BeEmpty())
		g.Expect(i.Spec.NetworkConfig.DNSServers).To(HaveExactElements(BeEquivalentTo("192.168.0.53")))
		g.Expect(i.Spec.InfraComponents.DHCP.RangeEnd).To(BeEquivalentTo("192.168.2.255"))
	})
	sees(w, named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), func(g Gomega, s *v1alpha1.DHCPServer) {
		g.Expect(s.Spec.LeaseConfig.RangeStart).To(BeEquivalentTo("192.168.1.0"))
	})

	pool := named(&hyperv1.NodePool{}, w.ns, "c1")
	w.changes(pool, func() { pool.Spec.Platform.Kubevirt.AdditionalNetworks[0].Name = w.ns + "/c1-moved" })
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Spec.NetworkConfig.NetworkAttachmentDefinition).To(BeEquivalentTo("c1-moved"))
	})
	w.Expect(w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NADNotFound")).To(ContainSubstring("c1-moved"))

	// While the Infra cannot be derived, the existing one stays.
	w.Expect(w.api.Delete(w.ctx, pool)).To(Succeed())
	w.Eventually(func(g Gomega) {
		events := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, events, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(HaveField("Reason", "NetworkAttachmentMissing")))
	}).Should(Succeed())
	w.silent()
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Spec.NetworkConfig.NetworkAttachmentDefinition).To(BeEquivalentTo("c1-moved"))
	})
}

func TestWhatIsSetOnTheInfraWinsOverWhatIsDerived(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto, names.AnnotationGateway, "192.168.0.1")
	w.settled("c1")
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	before := w.silent()
	w.changes(infra, func() {
		infra.Spec.NetworkConfig.Gateway, infra.Spec.NetworkConfig.NTPServers = "192.168.0.2", []v1alpha1.IPv4Address{"192.168.0.123"}
	})
	w.silent()
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).NotTo(HaveSuffix("/infras/c1"), "nothing is written against the user")
	}

	w.annotates("c1", names.AnnotationGateway, "192.168.0.3", names.AnnotationDNSServers, "192.168.0.53")
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Spec.NetworkConfig.DNSServers).To(HaveExactElements(BeEquivalentTo("192.168.0.53")))
	})
	w.told("c1", w.madeEvent(), "Normal FieldSetByHand: Infra "+w.ns+"/c1 has its own spec.networkConfig.gateway, which wins over what follows from this HostedCluster; change it there")
	before = w.silent()
	w.annotates("c1", "somebody", "else")
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written()[before:])
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Spec.NetworkConfig.Gateway).To(BeEquivalentTo("192.168.0.2"))
		g.Expect(i.Spec.NetworkConfig.NTPServers).To(HaveLen(1))
	})

	// Marks of ours on the Infra are corrected, and a field that is emptied is derived again.
	w.changes(infra, func() {
		infra.OwnerReferences, infra.Spec.NetworkConfig.Gateway = nil, ""
	})
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.OwnerReferences).To(HaveLen(1))
		g.Expect(i.Spec.NetworkConfig.Gateway).To(BeEquivalentTo("192.168.0.3"))
	})
}

func TestAnInfraIsReleasedWithItsAnnotationAndTakenBackWithIt(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.settled("c1")
	has, infra := w.inventory("c1"), named(&v1alpha1.Infra{}, w.ns, "c1")
	owners := func(n int) func(Gomega, *v1alpha1.Infra) {
		return func(g Gomega, i *v1alpha1.Infra) { g.Expect(i.OwnerReferences).To(HaveLen(n)) }
	}
	released := fmt.Sprintf("Warning InfraOrphaned: annotation hostedcluster.densityops.com/infra is gone: Infra %[1]s/c1 is kept with its 0 active leases, and is no longer updated or deleted with this HostedCluster; to manage it again, run: kubectl -n %[1]s annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/infra=auto; to remove it: kubectl -n %[1]s delete infra c1", w.ns)

	w.annotates("c1", names.AnnotationInfra, "")
	sees(w, infra, owners(0))
	w.told("c1", w.madeEvent(), released)
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto, names.AnnotationGateway, "192.168.0.1")
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		owners(1)(g, i)
		g.Expect(i.Spec.NetworkConfig.Gateway).To(BeEquivalentTo("192.168.0.1"))
	})

	w.annotates("c1", names.AnnotationInfra, "")
	sees(w, infra, owners(0))
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedCluster{}, w.ns, "c1"))).To(Succeed())
	w.silent()
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) { g.Expect(i.DeletionTimestamp).To(BeNil()) })
	w.Expect(w.inventory("c1")).To(Equal(has))
}

func TestNothingIsLeftOfAHostedClusterThatIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.settled("c1")
	w.Expect(len(w.inventory("c1"))).To(BeNumerically(">", 30))
	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.changes(hc, func() { hc.Finalizers = []string{"example.com/hypershift-at-work"} })

	// Workers may need the network until HyperShift is done; changes of the annotation have no effect meanwhile.
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedCluster{}, w.ns, "c1"))).To(Succeed())
	w.annotates("c1", names.AnnotationInfra, "")
	before := w.silent()
	sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.OwnerReferences).To(HaveLen(1))
		g.Expect(i.DeletionTimestamp).To(BeNil())
	})
	w.Expect(w.calls.written()).To(HaveLen(before))
	w.changes(hc, func() { hc.Finalizers = nil })
	w.gone(hc)
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.Eventually(func() []string { return w.inventory("c1") }).Should(BeEmpty())
}

func TestAnInfraThatWasWrittenByHandIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.silent() // its status is written, too
	before := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.told("c1", fmt.Sprintf("Warning InfraExists: Infra %s/c1 exists and was not created from this HostedCluster; the operator does not change it: remove annotation hostedcluster.densityops.com/infra, or delete the Infra to have it recreated", w.ns))
	w.annotates("c1", names.AnnotationInfra, "")
	w.silent()
	after := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(after.Spec).To(Equal(before.Spec))
	w.Expect(after.ObjectMeta).To(Equal(before.ObjectMeta))
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedCluster{}, w.ns, "c1"))).To(Succeed())
	w.silent()
	sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), func(g Gomega, i *v1alpha1.Infra) { g.Expect(i.DeletionTimestamp).To(BeNil()) })
}

func TestAHostedClusterMadeAnewGetsAnInfraAnew(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.settled("c1")
	hc := sees(w, named(&hyperv1.HostedCluster{}, w.ns, "c1"), there)
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedCluster{}, w.ns, "c1"))).To(Succeed())
	withoutIdentity(hc)
	w.creates(hc)
	sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), func(g Gomega, i *v1alpha1.Infra) { g.Expect(metav1.IsControlledBy(i, hc)).To(BeTrue()) })
	w.told("c1", w.madeEvent(), w.madeEvent())
}

// After a restore every UID is new, and no backup keeps ownerReferences to missing objects.
func TestARestoredInfraIsItsHostedClustersAgain(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.settled("c1")
	hc, infra := sees(w, named(&hyperv1.HostedCluster{}, w.ns, "c1"), there), sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedCluster{}, w.ns, "c1"))).To(Succeed())
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.stop()
	infra.Spec.NetworkConfig.MTU = 1400
	withoutIdentity(hc)
	withoutIdentity(infra)
	w.creates(infra, hc)
	w.start()
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) { g.Expect(metav1.IsControlledBy(i, hc)).To(BeTrue()) })
	w.Expect(infra.Spec.NetworkConfig.MTU).To(BeEquivalentTo(1400))
}

func TestAPausedHostedClusterIsNotProvisioned(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.changes(hc, func() { hc.Spec.PausedUntil = ptr.To("true") })
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.Expect(w.silent()).To(BeZero(), "written: %v", w.calls.written())
	w.changes(hc, func() { hc.Spec.PausedUntil = nil })
	sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
}

func TestAPoolThatIsTooSmallForItsNodePoolsIsSaid(t *testing.T) {
	w := newWorld(t)
	w.hostsForAll()
	infra := w.smallest("c1")
	infra.Spec.InfraComponents.DHCP.RangeStart, infra.Spec.InfraComponents.DHCP.RangeEnd = "192.168.100.10", "192.168.100.14"
	w.creates(infra)
	w.settled("c1") // 2 × 2 + 1: just enough
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
	pool := named(&hyperv1.NodePool{}, w.ns, "c1")
	w.changes(pool, func() { pool.Spec.Replicas = ptr.To[int32](3) })
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "PoolTooSmall")).To(Equal(
		"DHCP has 5 addresses to lease and may need 7: the NodePools have 3 replicas and a surge of 1 (2 × 3 + 1), because the address of a replaced worker is not free at once; widen networkConfig.cidr or the range from dhcp.rangeStart to rangeEnd, or exclude fewer addresses"))
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionTrue, "Serving")
}

// Render gets only a HostedCluster with the annotation and its NodePool; the cluster then has what render prints.
func TestRenderPrintsTheInfraOfAnAnnotation(t *testing.T) {
	w := newWorld(t)
	const metadata = "kind: HostedCluster\nmetadata: {name: c1, namespace: "
	text := w.hosted("c1") + fmt.Sprintf(nodePoolYAML, w.ns, "c1", w.ns+"/c1-vlan")
	w.Expect(text).To(ContainSubstring(metadata))
	text = strings.Replace(text, metadata, "kind: HostedCluster\nmetadata: {annotations: {"+names.AnnotationInfra+": auto}, name: c1, namespace: ", 1)
	w.puts(text)
	w.annotates("c1")
	sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)

	printed := w.rendered(text)
	w.Expect(printed[0].GetKind()).To(Equal("Infra"))
	live := named(&unstructured.Unstructured{}, w.ns, "c1")
	live.SetGroupVersionKind(printed[0].GroupVersionKind())
	sees(w, live, there)
	w.Expect(lacks("spec", printed[0].Object["spec"], live.Object["spec"])).To(BeEmpty())
	w.has(slices.DeleteFunc(printed, func(o unstructured.Unstructured) bool { return o.GetKind() == "Infra" }))
}

// The HostedCluster does not change: its subnet comes from the first Infra that somebody makes on the VLAN.
func TestASubnetIsTakenFromTheVLANOnceItIsSaidThere(t *testing.T) {
	w := newWorld(t)
	w.puts(strings.Replace(w.hosted("c1"), "    machineNetwork: [{cidr: 192.168.0.0/16}]\n", "", 1))
	w.puts(w.nodePool("c1", w.ns+"/c1-vlan"))
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.told("c1", fmt.Sprintf("Warning CIDRMissing: the VLAN's subnet is not known; these were tried in order: spec.networking.machineNetwork, the subnet in the workers' NetworkAttachmentDefinition, and the one that all Infras on it share; set it with: kubectl -n %[1]s annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/cidr=NETWORK/BITS", w.ns))
	first := w.smallest("c2")
	first.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
	w.creates(first)
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(infra.Spec.NetworkConfig.CIDR).To(BeEquivalentTo("192.168.100.0/24"))

	w.Expect(w.api.Delete(w.ctx, first)).To(Succeed())
	w.gone(first)
	w.silent()
	w.Expect(sees(w, infra, there).Spec.NetworkConfig.CIDR).To(BeEquivalentTo("192.168.100.0/24"), "what was said once stays")
}

// The network may be made after the HostedCluster, and has the subnet.
func TestASubnetIsTakenFromTheNetworkOnceItIsThere(t *testing.T) {
	w := newWorld(t)
	w.puts(strings.Replace(w.hosted("c1"), "    machineNetwork: [{cidr: 192.168.0.0/16}]\n", "", 1))
	w.puts(w.nodePool("c1", w.ns+"/later"))
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.told("c1", fmt.Sprintf("Warning CIDRMissing: the VLAN's subnet is not known; these were tried in order: spec.networking.machineNetwork, the subnet in the workers' NetworkAttachmentDefinition, and the one that all Infras on it share; set it with: kubectl -n %[1]s annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/cidr=NETWORK/BITS", w.ns))
	later := named(&nad.NetworkAttachmentDefinition{}, w.ns, "later")
	later.Spec.Config = `{"cniVersion":"0.3.1","name":"later","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"` + w.ns + `/later","subnets":"192.168.200.0/24"}`
	w.creates(later)
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(infra.Spec.NetworkConfig.CIDR).To(BeEquivalentTo("192.168.200.0/24"))
}

// The example has the fields and values of a public how-to. The test plays HyperShift: the control plane's objects and status.
func TestTheHostedClusterOfAPublicHowToBecomesReadyWithTwoAnnotations(t *testing.T) {
	w := newWorld(t)
	const name, domain = "tenant-a", "tenant-a.coe.muc.redhat.com"
	example, err := os.ReadFile("../../examples/tenant-network.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	for _, doc := range strings.Split(w.hosted(name), "\n---\n") {
		if strings.Contains(doc, "kind: Namespace\n") || strings.Contains(doc, "namespace: "+w.controlPlane(name)+"}") {
			w.puts(regexp.MustCompile(`host: (\w+)-.*`).ReplaceAllString(doc, "host: $1."+domain))
		}
	}
	w.puts(strings.NewReplacer("namespace: clusters\n", "namespace: "+w.ns+"\n", "namespace: clusters}", "namespace: "+w.ns+"}").Replace(string(example)))
	w.annotates(name)
	hc := named(&hyperv1.HostedCluster{}, w.ns, name)
	w.Expect(sees(w, hc, there).Annotations).To(HaveLen(2))
	w.reports(hc, func() {
		hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api." + domain, Port: 6443}
		hc.Status.IgnitionEndpoint = "ignition." + domain
		hc.Status.OAuthCallbackURLTemplate = "https://oauth." + domain + ":443/oauth2callback/[identity-provider-name]"
	})
	w.settled(name)
	dns := sees(w, named(&v1alpha1.DNSServer{}, w.ns, names.DNSServer(name)), there)
	w.Expect(dns.Spec.HostedClusterDomain).To(BeEquivalentTo(domain))
	var answered []string
	for _, e := range dns.Spec.StaticEntries {
		answered = append(answered, string(e.Hostname))
	}
	w.Expect(answered).To(ConsistOf("api."+domain, "ignition."+domain, "konnectivity."+domain, "oauth."+domain))
	dhcp := sees(w, named(&v1alpha1.DHCPServer{}, w.ns, names.DHCPServer(name)), there)
	w.Expect(dhcp.Spec.NetworkConfig.SearchDomains).To(HaveExactElements(BeEquivalentTo(domain)))
}

// A namespace may wait for its control plane: its networks are the HostedCluster's once HyperShift has made the control plane.
func TestASubnetIsTakenFromTheControlPlanesNetworkOnceThatIsThere(t *testing.T) {
	w := newWorld(t)
	text := strings.Replace(w.hosted("c1"), "    machineNetwork: [{cidr: 192.168.0.0/16}]\n", "", 1)
	before, rest, found := strings.Cut(text, "\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: HostedControlPlane\n")
	w.Expect(found).To(BeTrue())
	controlPlane, after, _ := strings.Cut(rest, "\n---\n")
	w.puts(before + "\n---\n" + after)
	early := named(&nad.NetworkAttachmentDefinition{}, w.ns+"-c1", "early")
	early.Spec.Config = `{"cniVersion":"0.3.1","name":"early","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"` + w.ns + `-c1/early","subnets":"192.168.201.0/24"}`
	w.creates(early)
	w.puts(w.nodePool("c1", w.ns+"-c1/early"))
	w.annotates("c1", names.AnnotationInfra, names.InfraAuto)
	w.told("c1", fmt.Sprintf("Warning CIDRMissing: the VLAN's subnet is not known; these were tried in order: spec.networking.machineNetwork, the subnet in the workers' NetworkAttachmentDefinition, and the one that all Infras on it share; set it with: kubectl -n %[1]s annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/cidr=NETWORK/BITS", w.ns))
	w.puts("apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedControlPlane\n" + controlPlane)
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	w.Expect(infra.Spec.NetworkConfig.CIDR).To(BeEquivalentTo("192.168.201.0/24"))
}
