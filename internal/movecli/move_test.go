package movecli_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/movecli"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// forgotten is what the manager here writes once it has seen everything switched off (input.Memory).
const forgotten = `{"of":"clusters/c1","addresses":{}}`

const given = `{"of":"clusters/c1","addresses":{"dhcp":"192.168.100.7"},"pool":["192.168.100.40","192.168.100.60"]}`

// two are two management clusters.
type two struct {
	*WithT
	t          *testing.T
	here, away client.Client
	// byAnotherAddress is a client of the cluster here.
	byAnotherAddress client.Client
}

const onAgain = "remove enabled: false here, then the pause, wait until it serves, and run this again"

func newTwo(t *testing.T) *two {
	w := &two{WithT: NewWithT(t), t: t}
	configs := make([]*rest.Config, 2)
	var starting sync.WaitGroup
	for n := range configs {
		starting.Go(func() {
			cluster, err := envtest.Start(false)
			w.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = cluster.Stop() })
			configs[n] = cluster.Admin
		})
	}
	starting.Wait()
	for n, to := range []*client.Client{&w.here, &w.away, &w.byAnotherAddress} {
		api, err := client.New(configs[n%2], client.Options{Scheme: controller.Scheme()})
		w.Expect(err).NotTo(HaveOccurred())
		*to = api
		w.Eventually(api.Get).WithArguments(t.Context(), types.NamespacedName{Name: "kube-system"}, &corev1.Namespace{}).WithTimeout(time.Minute).Should(Succeed())
	}
	w.makes(w.here, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}})
	network := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vlan100"}, Spec: nad.Spec{Config: `{"cniVersion":"0.3.1","type":"bridge","bridge":"br0"}`}}
	network.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "clusters"}
	w.makes(w.here, network)
	w.makes(w.here, infra())
	w.makes(w.here, lease("192.168.100.50", "52:54:00:00:00:01", &v1alpha1.VMReference{Namespace: "clusters-c1", Name: "w1", UID: "1"}))
	w.makes(w.here, &v1alpha1.DHCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp"}, Spec: v1alpha1.DHCPServerSpec{
		NetworkConfig: v1alpha1.DHCPNetworkConfig{Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan100"}, CIDR: "192.168.100.0/24", ServerIP: "192.168.100.7"},
		LeaseConfig:   v1alpha1.DHCPLeaseConfig{RangeStart: "192.168.100.40", RangeEnd: "192.168.100.60", LeaseTime: metav1.Duration{Duration: time.Hour}},
	}})
	w.makes(w.here, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-0", Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: "clusters"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "dhcp", Image: "oooi"}}},
	})
	return w
}

func infra() *v1alpha1.Infra {
	i := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", Annotations: map[string]string{names.AnnotationGiven: given}}}
	i.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: "vlan100", NetworkAttachmentNamespace: "default"}
	i.Spec.InfraComponents.DNS.BaseDomain, i.Spec.InfraComponents.DNS.ClusterName, i.Spec.InfraComponents.Proxy.ControlPlaneNamespace = "example.com", "c1", "clusters-c1"
	i.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "registry", Hostnames: []v1alpha1.DNSNameOrWildcard{"registry.example.com"}, Port: 443, Protocol: "TLS", Target: v1alpha1.EndpointTarget{Service: "registry", Port: 5000}}}
	return i
}

func lease(ip, mac string, vm *v1alpha1.VMReference) *v1alpha1.DHCPLease {
	l := &v1alpha1.DHCPLease{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-" + ip, Labels: map[string]string{names.LabelOwnerUID: "uid-1"}}}
	l.Spec = v1alpha1.DHCPLeaseSpec{
		IP: v1alpha1.IPv4Address(ip), MAC: v1alpha1.MACAddress(mac), VMRef: vm, ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound,
		DurableUntilTime: metav1.NewMicroTime(time.Now().Add(-time.Minute)),
		History:          []v1alpha1.FormerLease{{MAC: "52:54:00:00:00:09", UntilTime: metav1.Now().Rfc3339Copy(), Ended: v1alpha1.LeaseEndReleased}},
	}
	return l
}

func (w *two) makes(in client.Client, o client.Object) {
	w.t.Helper()
	w.Expect(in.Create(w.t.Context(), o)).To(Succeed())
}

func (w *two) infraIn(api client.Client) *v1alpha1.Infra {
	i := &v1alpha1.Infra{}
	w.Expect(api.Get(w.t.Context(), types.NamespacedName{Namespace: "clusters", Name: "c1"}, i)).To(Succeed())
	return i
}

func (w *two) cutOver(patience time.Duration) movecli.CutOver {
	return movecli.CutOver{
		From: w.here, To: w.away, Infra: types.NamespacedName{Namespace: "clusters", Name: "c1"}, Patience: patience,
		Tell: func(string) {},
	}
}

func (w *two) run(c movecli.CutOver) error {
	m, err := movecli.Read(context.WithoutCancel(w.t.Context()), c.From, c.Infra, time.Now())
	if err != nil {
		return err
	}
	return c.Run(context.WithoutCancel(w.t.Context()), m)
}

// forgets plays the manager here, which is not paused and sees everything switched off.
func (w *two) forgets() {
	w.t.Helper()
	w.remembers(w.here, forgotten)
}

func (w *two) remembers(api client.Client, given string) {
	w.t.Helper()
	i := w.infraIn(api)
	i.Annotations[names.AnnotationGiven] = given
	w.Expect(api.Update(w.t.Context(), i)).To(Succeed())
}

// without runs something while the other cluster has no Infra.
func (w *two) without(f func()) {
	w.t.Helper()
	there := w.infraIn(w.away)
	w.Expect(w.away.Delete(w.t.Context(), there.DeepCopy())).To(Succeed())
	f()
	there.ResourceVersion = ""
	w.makes(w.away, there)
}

func off(i *v1alpha1.Infra) *v1alpha1.Infra {
	c := &i.Spec.InfraComponents
	c.DHCP.Enabled, c.DNS.Enabled, c.Proxy.Enabled = ptr.To(false), ptr.To(false), ptr.To(false)
	return i
}

// refuses tries what the other cluster may not have before anything is interrupted here.
func (w *two) refuses() {
	w.t.Helper()
	same := w.cutOver(time.Second)
	same.To = w.byAnotherAddress
	w.Expect(w.run(same)).To(MatchError("--to is this cluster by another address: name the context of the other one"))
	w.Expect(w.run(w.cutOver(time.Second))).To(MatchError(ContainSubstring("the other cluster, Namespace clusters: ")))
	w.makes(w.away, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}})
	other := infra()
	other.Annotations[names.AnnotationGiven] = "{}"
	for says, there := range map[string]*v1alpha1.Infra{
		"the other cluster has an Infra clusters/c1 with addresses of its own: remove that first": other,
		"the other cluster has an Infra clusters/c1 that is switched off: remove that first":      off(infra()),
	} {
		w.makes(w.away, there)
		w.Expect(w.run(w.cutOver(time.Second))).To(MatchError(says))
		w.Expect(w.away.Delete(w.t.Context(), there)).To(Succeed())
	}
	w.Expect(w.infraIn(w.here).Spec).To(Equal(infra().Spec), "nothing is interrupted where the other cluster is not ready")
}

// losesIt moves everything, and then the Infra is gone from the other cluster: the one here can be switched on again, as it was.
func (w *two) losesIt() {
	w.t.Helper()
	c := w.cutOver(time.Minute)
	c.Tell = func(what string) {
		if strings.HasSuffix(what, "leases are there") {
			w.Expect(w.away.Delete(w.t.Context(), w.infraIn(w.away))).To(Succeed())
		}
	}
	there := w.infraIn(w.away)
	w.Expect(w.run(c)).To(MatchError("Infra clusters/c1 is gone from the other cluster: " + onAgain))
	w.Expect(w.infraIn(w.here).Annotations).To(Equal(map[string]string{names.AnnotationGiven: given, names.AnnotationPaused: "true"}))
	there.ResourceVersion = ""
	w.makes(w.away, there)
}

func TestNothingServesThereBeforeTheLastPodHereHasEnded(t *testing.T) {
	w := newTwo(t)
	w.refuses()
	w.admits(t.TempDir())
	w.Expect(w.run(w.cutOver(5 * time.Second))).To(MatchError(And(HavePrefix("still here: Pod c1-dhcp-0, DHCPServer c1-dhcp: "), ContainSubstring("run this again"))))
	w.Expect(w.infraIn(w.away).Annotations).To(HaveKeyWithValue(names.AnnotationPaused, "true"))
	w.Expect(*w.infraIn(w.here).Spec.InfraComponents.DHCP.Enabled).To(BeFalse())
	w.forgets()
	w.without(func() {
		w.Expect(w.run(w.cutOver(time.Second))).To(MatchError("Infra clusters/c1 is switched off here, and the other cluster has none that knows what it was: " + onAgain))
	})
	foreign := lease("192.168.100.50", "52:54:00:00:00:0f", nil)
	w.makes(w.away, foreign)

	done := make(chan error, 1)
	go func() { done <- w.run(w.cutOver(time.Minute)) }()
	w.Consistently(done, time.Second).ShouldNot(Receive())
	last := lease("192.168.100.51", "52:54:00:00:00:02", nil)
	w.makes(w.here, last) // what the daemon wrote last
	earlier := lease("192.168.100.51", "52:54:00:00:00:02", nil)
	earlier.Spec.DurableUntilTime.Time = last.Spec.DurableUntilTime.Add(-time.Hour)
	w.makes(w.away, earlier) // from files of another day
	w.Expect(w.here.Delete(t.Context(), &v1alpha1.DHCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp"}})).To(Succeed())
	w.Consistently(func() map[string]string { return w.infraIn(w.away).Annotations }, time.Second).Should(HaveKey(names.AnnotationPaused))
	w.Expect(w.here.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-0"}}, client.GracePeriodSeconds(0))).To(Succeed())
	w.Eventually(done).WithTimeout(time.Minute).Should(Receive(MatchError(HavePrefix("the other cluster has a lease c1-dhcp-192.168.100.50 of another client, 52:54:00:00:00:0f: "))))
	w.Expect(w.infraIn(w.away).Annotations).To(HaveKey(names.AnnotationPaused))
	w.Expect(w.away.Delete(t.Context(), foreign)).To(Succeed())
	w.losesIt()
	w.forgets()
	w.Expect(w.run(w.cutOver(time.Minute))).To(Succeed())

	there := w.infraIn(w.away)
	w.Expect(there.Spec).To(Equal(infra().Spec), "as it was before it was switched off")
	w.Expect(there.Annotations).To(Equal(map[string]string{names.AnnotationGiven: given}))
	network := &nad.NetworkAttachmentDefinition{}
	w.Expect(w.away.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "vlan100"}, network)).To(Succeed())
	w.Expect(network.Annotations).To(HaveKeyWithValue(names.AnnotationAllowedNamespaces, "clusters"))
	carried := &v1alpha1.DHCPLeaseList{}
	w.Expect(w.away.List(t.Context(), carried)).To(Succeed())
	w.Expect(carried.Items).To(HaveLen(2))
	machine, other := carried.Items[0], carried.Items[1]
	w.Expect(machine.Spec.VMRef).To(BeNil(), "it would end by the machine's absence")
	w.Expect(machine.Spec.DurableUntilTime.Time).To(BeTemporally("~", time.Now().Add(48*time.Hour), time.Minute))
	w.Expect(machine.Spec.History).To(HaveLen(1))
	w.Expect(machine.Labels).NotTo(HaveKey(names.LabelOwnerUID))
	w.Expect(other.Spec.DurableUntilTime.Time).To(BeTemporally("==", last.Spec.DurableUntilTime.Time), "as its client was promised last")

	w.forgets()
	w.Expect(w.run(w.cutOver(time.Second))).To(MatchError("Infra clusters/c1 serves in the other cluster already: there is nothing to move"))
}

// admits tries the files of a dry run on the other cluster.
func (w *two) admits(dir string) {
	w.t.Helper()
	m, err := movecli.Read(w.t.Context(), w.here, w.cutOver(0).Infra, time.Now())
	w.Expect(err).NotTo(HaveOccurred())
	files, err := m.Files(dir)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(files).To(Equal([]string{dir + "/1-network.yaml", dir + "/2-infra.yaml", dir + "/3-leases.yaml"}))
	w.Expect(m.Left).To(ConsistOf("extraEndpoints registry is Service registry: create it there"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		w.Expect(err).NotTo(HaveOccurred())
		objects, err := envtest.Objects(text, controller.Scheme())
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(objects).To(HaveLen(1))
		w.Expect(w.away.Create(w.t.Context(), objects[0], client.DryRunAll)).To(Succeed(), f)
	}
}
