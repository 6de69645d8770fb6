package controller_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
)

// numberedBridge is bridge bNN of DPUCluster dNN.
func (w dpuWorld) numberedBridge(n int) *dpuv1.DPUHCPBridge {
	b := w.bridge()
	b.Name = fmt.Sprintf("b%02d", n)
	b.Spec.DPUClusterRef.Name = v1alpha1.ObjectName(fmt.Sprintf("d%02d", n))
	b.Spec.MetalLBVirtualIP = v1alpha1.IPAddress(fmt.Sprintf("192.0.2.1%02d", n))
	return b
}

// image is all that there is of a bridge, without what differs between bridges.
func (w dpuWorld) image(n int) string {
	w.t.Helper()
	b := w.numberedBridge(n)
	hc, np := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, b.Name), there), sees(w.world, named(&hyperv1.NodePool{}, w.ns, b.Name), there)
	cluster := sees(w.world, w.dpuCluster(string(b.Spec.DPUClusterRef.Name), ""), there)
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	ours := client.MatchingLabels{names.LabelBridge: b.Name, names.LabelBridgeNamespace: w.ns}
	w.Expect(w.api.List(w.ctx, secrets, ours)).To(Succeed())
	w.Expect(w.api.List(w.ctx, maps, ours)).To(Succeed())
	pool := sees(w.world, named(&metallb.IPAddressPool{}, "metallb-system", names.Qualified(w.ns, b.Name)), there)
	announced := sees(w.world, named(&metallb.L2Advertisement{}, "metallb-system", pool.Name), there)
	all := []any{hc.Spec, np.Spec, cluster.Spec, meta.IsStatusConditionTrue(cluster.Status.Conditions, dpf.ConditionCreated), pool.Spec, announced.Spec}
	for _, m := range maps.Items {
		all = append(all, m.Name, m.Data)
	}
	for _, s := range secrets.Items {
		if key := s.Data["key"]; key != nil {
			s.Data = map[string][]byte{"key": make([]byte, len(key))}
		}
		all = append(all, s.Name, s.Data)
	}
	text, err := yaml.Marshal(all)
	w.Expect(err).NotTo(HaveOccurred())
	return regexp.MustCompile(`\b([bd]|192\.0\.2\.1)\d\d\b`).ReplaceAllString(string(text), "${1}NN")
}

// settledAt waits until a bridge has a release, and DPF has a kubeconfig.
func (w dpuWorld) settledAt(n int, image, token string) {
	w.t.Helper()
	b := w.numberedBridge(n)
	sees(w.world, w.injected(b.Name), func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: " + token))
	})
	sees(w.world, named(&hyperv1.NodePool{}, w.ns, b.Name), func(g Gomega, np *hyperv1.NodePool) { g.Expect(np.Spec.Release.Image).To(Equal(image)) })
	w.saysOf(b.Name, dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
}

// copied waits until a bridge has the newest pull secret, and no other.
func (w dpuWorld) copied(n int) {
	w.t.Helper()
	name := w.numberedBridge(n).Name
	w.Eventually(func(g Gomega) {
		secrets := &corev1.SecretList{}
		g.Expect(w.api.List(w.ctx, secrets, client.InNamespace(w.ns), client.MatchingLabels{names.LabelBridge: name, names.LabelBridgeSecret: "true"})).To(Succeed())
		var pulls []string
		for _, s := range secrets.Items {
			if text := s.Data[corev1.DockerConfigJsonKey]; text != nil {
				pulls = append(pulls, string(text))
			}
		}
		g.Expect(pulls).To(ConsistOf(ContainSubstring(`"y"`)))
	}).Should(Succeed())
}

// runsAgain replaces each manager that dies by another, which remembers nothing.
func (w *world) runsAgain() {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.faults.died:
				w.stop()
				w.start()
			case <-over:
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		close(over)
		<-ended
	})
}

// A bridge reaches the same end no matter before which write its manager is killed: made, its kubeconfig rotated, then its pull secret,
// upgraded, deleted. In each step the manager dies before the n-th write for bridge n and before the first of each kind, and the answer to
// another is lost; bridge 00 dies only with the others.
func TestABridgeComesToTheSameEndWhereverItsManagerDies(t *testing.T) {
	const most = 24 // kinds of writes that one bridge needs for any of these, at most; checked below
	w := newDPUWorld(t)
	w.SetDefaultEventuallyTimeout(5 * time.Minute)
	w.grants()
	w.runsAgain()
	faults := map[string]fault{}
	for n := 1; n <= most; n++ {
		faults[fmt.Sprintf("%02d", n)] = fault{kills: n, unheard: most + 1 - n}
	}
	each := func(do func(n int)) {
		for n := range most + 1 {
			do(n)
		}
	}
	under := func(faults map[string]fault, what string, do func()) {
		t.Helper()
		w.faults.since(faults)
		do()
		kinds, without := w.faults.survived()
		t.Logf("%s: %d kinds of writes for a bridge", what, kinds)
		w.Expect(kinds).To(And(BeNumerically(">", 0), BeNumerically("<=", most)), "more than a manager died before")
		w.Expect(without).To(BeEmpty(), "writes before which no manager died")
	}
	under(faults, "made", func() {
		each(func(n int) {
			b := w.numberedBridge(n)
			w.creates(w.dpuCluster(string(b.Spec.DPUClusterRef.Name), "example.com/hosted"), b)
		})
		each(func(n int) { w.hyperShift(w.numberedBridge(n).Name, "first") })
		each(func(n int) { w.settledAt(n, release, "first") })
		w.silent()
	})
	under(faults, "given another kubeconfig", func() {
		each(func(n int) { w.writesKubeconfig(w.numberedBridge(n).Name, "second") })
		each(func(n int) { w.settledAt(n, release, "second") })
		w.silent()
	})
	under(faults, "given another pull secret", func() {
		pull := named(&corev1.Secret{}, w.ns, "pull")
		w.changes(pull, func() { pull.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"y"}}}`) })
		each(func(n int) { w.copied(n) })
		w.silent()
	})
	under(faults, "upgraded", func() {
		each(func(n int) {
			b := w.numberedBridge(n)
			w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
		})
		each(func(n int) { w.settledAt(n, newRelease, "second") })
		w.silent()
	})
	want := w.image(0)
	w.Expect(want).To(ContainSubstring(newOSImage))
	each(func(n int) { w.Expect(w.image(n)).To(Equal(want), "bridge %d", n) })

	card := func(n int) client.Object {
		return w.dpu(fmt.Sprintf("card-%d", n), string(w.numberedBridge(n).Spec.DPUClusterRef.Name))
	}
	each(func(n int) { w.creates(card(n)) })
	under(faults, "deleted", func() {
		each(func(n int) { w.Expect(w.api.Delete(w.ctx, w.numberedBridge(n))).To(Succeed()) })
		each(func(n int) {
			w.saysOf(w.numberedBridge(n).Name, dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupDPUsAttached)
			w.Expect(w.api.Delete(w.ctx, card(n))).To(Succeed())
		})
		each(func(n int) { w.tearsDown(w.numberedBridge(n).Name) })
		each(func(n int) { w.gone(w.numberedBridge(n)) })
	})
	w.Expect(w.left()).To(BeEmpty())
	each(func(n int) {
		sees(w.world, w.dpuCluster(string(w.numberedBridge(n).Spec.DPUClusterRef.Name), ""), func(g Gomega, c *dpf.DPUCluster) { g.Expect(c.Spec.Kubeconfig).To(BeEmpty()) })
	})
}
