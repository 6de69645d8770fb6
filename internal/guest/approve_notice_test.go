package guest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
)

// asksWithAnotherKey requests a bootstrap certificate with a new key, as a new installation does, or whoever has read a worker's Ignition.
func (g *gate) asksWithAnotherKey(name, host string) {
	g.t.Helper()
	g.asksWith(newKey(g), name, host)
}

func newKey(g *gate) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	return key
}

func (g *gate) asksWith(key *ecdsa.PrivateKey, name, host string) {
	g.t.Helper()
	_, err := as(g.t, "bootstrap", host).CertificatesV1().CertificateSigningRequests().Create(g.ctx, requestWith(g.t, key, name, host, "bootstrap"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// warnings are those so far with one reason.
func (g *gate) warnings(reason string) (all []approve.Notice) {
	for _, n := range g.audit() {
		if n.Warning && n.Reason == reason {
			all = append(all, n)
		}
	}
	return all
}

func TestWhatBootstrapsAgainIsToldOf(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.joins("dpu-1", corev1.ConditionUnknown, time.Hour)
	before := warned(approve.NodeRebootstrapped)
	g.open()
	g.asks("boot", "dpu-1", "bootstrap")
	g.approved("boot")
	g.Eventually(func() []approve.Notice { return g.warnings(approve.NodeRebootstrapped) }).Should(ConsistOf(And(
		HaveField("Name", "boot"), HaveField("Host", "dpu-1"), HaveField("Kind", csr.Bootstrap),
		HaveField("Message", ContainSubstring("is approved for Node dpu-1, which exists")))))
	g.Expect(warned(approve.NodeRebootstrapped)).To(Equal(before + 1))
	g.asks("more", "dpu-1", "bootstrap")
	g.waits("more")
	g.Expect(g.warnings(approve.NodeRebootstrapped)).To(HaveLen(1), "none of the DPU without a Node that was let in meanwhile")
}

func TestANodeThatMayNotBootstrapAgainWaitsUntilItIsDeleted(t *testing.T) {
	g, before := newGate(t), warned(approve.RebootstrapRefused)
	g.approving.NoRebootstrap = true
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.joins("dpu-1", corev1.ConditionUnknown, time.Hour)
	g.open()
	g.asks("boot", "dpu-1", "bootstrap")
	g.Eventually(func() []approve.Notice { return g.warnings(approve.RebootstrapRefused) }).Should(HaveLen(1))
	g.asks("more", "dpu-1", "bootstrap")
	g.waits("boot")
	g.waits("more")
	g.Expect(g.warnings(approve.RebootstrapRefused)).To(HaveLen(1), "told once")
	g.Expect(warned(approve.RebootstrapRefused)).To(BeNumerically("==", before+1))
	g.Expect(g.kube.CoreV1().Nodes().Delete(context.Background(), "dpu-1", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() bool { return approvalOf(g.live("boot")) != nil || approvalOf(g.live("more")) != nil }).Should(BeTrue())
	g.Expect(g.warnings(approve.NodeRebootstrapped)).To(BeEmpty(), "it joins for the first time")
}

// Otherwise the last to ask would be approved as soon as an administrator deletes the Node, as the warning says.
func TestOfTwoKeysNoneIsLetInWhereNoneBootstrapsAgain(t *testing.T) {
	g := newGate(t)
	g.approving.NoRebootstrap = true
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.joins("dpu-1", corev1.ConditionUnknown, time.Hour)
	g.open()
	g.asks("own", "dpu-1", "bootstrap")
	g.asksWithAnotherKey("stranger", "dpu-1")
	g.Eventually(func() []approve.Notice { return g.warnings(approve.KeysDiffer) }).Should(HaveLen(1))
	g.Expect(g.kube.CoreV1().Nodes().Delete(context.Background(), "dpu-1", metav1.DeleteOptions{})).To(Succeed())
	g.waits("own")
	g.waits("stranger")
	g.Expect(g.kube.CertificatesV1().CertificateSigningRequests().Delete(g.ctx, "stranger", metav1.DeleteOptions{})).To(Succeed())
	g.approved("own")
}

// More CSRs than we keep may hide the DPU's own key: none is approved until only one CSR is left, and then that one is.
func TestOfMoreKeysThanAreKeptNoneIsLetInWhereNoneBootstrapsAgain(t *testing.T) {
	g := newGate(t)
	g.approving.NoRebootstrap = true
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.joins("dpu-1", corev1.ConditionUnknown, time.Hour)
	g.open()
	g.asks("own", "dpu-1", "bootstrap")
	created := g.live("own").CreationTimestamp.Time
	g.Eventually(time.Now).Should(BeTemporally(">", created.Add(1100*time.Millisecond)), "the API server's times are whole seconds")
	deletes := func(name string, from, to int) {
		for i := from; i < to; i++ {
			g.Expect(g.kube.CertificatesV1().CertificateSigningRequests().Delete(g.ctx, fmt.Sprint(name, i), metav1.DeleteOptions{})).To(Succeed())
		}
	}
	for i := range 50 {
		g.asksWithAnotherKey(fmt.Sprint("stranger-", i), "dpu-1")
	}
	g.Eventually(func() []string { return g.see().Beyond }).Should(ContainElement(ContainSubstring("of one host waited")))
	g.Expect(g.kube.CoreV1().Nodes().Delete(context.Background(), "dpu-1", metav1.DeleteOptions{})).To(Succeed())
	deletes("stranger-", 0, 40)
	last := newKey(g)
	for i := range 6 {
		g.asksWith(last, fmt.Sprint("last-", i), "dpu-1")
	}
	deletes("stranger-", 40, 50)
	g.waits("last-0") // all CSRs that are kept have its key
	deletes("last-", 1, 6)
	g.waits("last-0")
	g.waits("own")
	deletes("last-", 0, 1)
	g.approved("own")
}

func TestRequestsOfOneHostWithDifferentKeysAreToldOf(t *testing.T) {
	g, before := newGate(t), warned(approve.KeysDiffer)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", false), card("dpu-2", false)} })
	g.open()
	g.asks("first", "dpu-1", "bootstrap")
	g.asks("again", "dpu-1", "bootstrap")
	g.asks("other", "dpu-2", "bootstrap")
	g.waits("again")
	g.Expect(g.warnings(approve.KeysDiffer)).To(BeEmpty(), "a kubelet may ask twice with one key")
	g.asksWithAnotherKey("stranger", "dpu-1")
	g.Eventually(func() []approve.Notice { return g.warnings(approve.KeysDiffer) }).Should(ConsistOf(And(HaveField("Host", "dpu-1"),
		HaveField("Message", ContainSubstring("DPU dpf/dpu-1 carry 2 different keys")))))
	g.asksWithAnotherKey("more", "dpu-1")
	g.asksWithAnotherKey("nobodys", "dpu-9")
	g.waits("more")
	g.Expect(g.warnings(approve.KeysDiffer)).To(HaveLen(1), "told once for a host, and of no host that is no DPU's")
	g.Expect(warned(approve.KeysDiffer)).To(BeNumerically("==", before+1))
}

// An approved CSR counts too: a CSR with another key after it is not from the same kubelet.
func TestAKeyOtherThanTheApprovedOneIsToldOf(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.open()
	g.asks("boot", "dpu-1", "bootstrap")
	g.approved("boot")
	g.asksWithAnotherKey("stranger", "dpu-1")
	g.Eventually(func() []approve.Notice { return g.warnings(approve.KeysDiffer) }).Should(ConsistOf(HaveField("Name", "stranger")))
	g.waits("stranger")
}

// A CSR that waits since before the DPU was recreated has the key of the one before.
func TestAKeyOfTheDPUBeforeIsNotHeldAgainstItsSuccessor(t *testing.T) {
	g := newGate(t)
	successor := card("dpu-1", false)
	g.set(func() { g.cards = []dpf.DPU{successor} })
	g.open()
	g.asksWithAnotherKey("before", "dpu-1")
	successor.UID, successor.CreationTimestamp = "uid-successor", metav1.NewTime(g.live("before").CreationTimestamp.Add(time.Second))
	g.set(func() { g.cards = []dpf.DPU{successor} })
	g.Eventually(func() time.Time { return time.Now() }).Should(BeTemporally(">", successor.CreationTimestamp.Add(time.Second)))
	g.asks("after", "dpu-1", "bootstrap")
	g.waits("after")
	g.Expect(g.warnings(approve.KeysDiffer)).To(BeEmpty())
}
