package controller_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

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
	return b
}

// image of all that there is of a bridge, without what differs from one to another.
func (w dpuWorld) image(n int) string {
	w.t.Helper()
	b := w.numberedBridge(n)
	hc, np := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, b.Name), there), sees(w.world, named(&hyperv1.NodePool{}, w.ns, b.Name), there)
	cluster := sees(w.world, w.dpuCluster(string(b.Spec.DPUClusterRef.Name), ""), there)
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	ours := client.MatchingLabels{names.LabelBridge: b.Name, names.LabelBridgeNamespace: w.ns}
	w.Expect(w.api.List(w.ctx, secrets, ours)).To(Succeed())
	w.Expect(w.api.List(w.ctx, maps, ours)).To(Succeed())
	pool := sees(w.world, named(&metallb.IPAddressPool{}, "metallb-system", names.Abroad(w.ns, b.Name)), there)
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
	return regexp.MustCompile(`\b([bd])\d\d\b`).ReplaceAllString(string(text), "${1}NN")
}

// settledAt waits until a bridge has a release, and DPF a kubeconfig.
func (w dpuWorld) settledAt(n int, image, token string) {
	w.t.Helper()
	b := w.numberedBridge(n)
	sees(w.world, w.injected(b.Name), func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: " + token))
	})
	sees(w.world, named(&hyperv1.NodePool{}, w.ns, b.Name), func(g Gomega, np *hyperv1.NodePool) { g.Expect(np.Spec.Release.Image).To(Equal(image)) })
	w.saysOf(b.Name, dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
}

// Whichever of its writes fails, before it is done or after, a bridge comes to the same end: made, rotated, upgraded, deleted. Bridge
// 00 fails none; of two that follow, one has its k-th call fail and the other has it done and hears nothing of it.
func TestABridgeComesToTheSameEndWhicheverOfItsWritesFails(t *testing.T) {
	const writes = 44 // that one bridge needs for its whole life; checked below
	w := newDPUWorld(t)
	w.grantsSecrets()
	w.wire.setCut(true) // approval is not what this is about
	w.faults.count, w.faults.fail = map[string]int{}, map[string]fault{}
	for k := 1; k <= writes; k++ {
		w.faults.fail[fmt.Sprintf("%02d", 2*k-1)], w.faults.fail[fmt.Sprintf("%02d", 2*k)] = fault{k, false}, fault{k, true}
	}
	each := func(do func(n int)) {
		for n := range 2*writes + 1 {
			do(n)
		}
	}
	each(func(n int) {
		b := w.numberedBridge(n)
		w.creates(w.dpuCluster(string(b.Spec.DPUClusterRef.Name), "example.com/hosted"), b)
	})
	each(func(n int) { w.hyperShift(w.numberedBridge(n).Name, "first") })
	each(func(n int) { w.settledAt(n, release, "first") })
	each(func(n int) { w.writesKubeconfig(w.numberedBridge(n).Name, "second") })
	each(func(n int) { w.settledAt(n, release, "second") })
	pull := named(&corev1.Secret{}, w.ns, "pull")
	w.changes(pull, func() { pull.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"y"}}}`) })
	each(func(n int) {
		b := w.numberedBridge(n)
		w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	})
	each(func(n int) { w.settledAt(n, newRelease, "second") })
	w.silent()
	want := w.image(0)
	w.Expect(want).To(And(ContainSubstring(newOSImage), ContainSubstring("bNN-pull-secret-")))
	w.Expect(strings.Count(want, "bNN-pull-secret-")).To(Equal(2), "the copy that was replaced is gone:\n%s", want)
	each(func(n int) { w.Expect(w.image(n)).To(Equal(want), "bridge %d", n) })

	each(func(n int) { w.Expect(w.api.Delete(w.ctx, w.numberedBridge(n))).To(Succeed()) })
	each(func(n int) { w.tearsDown(w.numberedBridge(n).Name) })
	each(func(n int) { w.gone(w.numberedBridge(n)) })
	w.Expect(w.left()).To(BeEmpty())
	each(func(n int) {
		sees(w.world, w.dpuCluster(string(w.numberedBridge(n).Spec.DPUClusterRef.Name), ""), func(g Gomega, c *dpf.DPUCluster) { g.Expect(c.Spec.Kubeconfig).To(BeEmpty()) })
	})
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	t.Logf("one bridge made %d writes", w.faults.count["00"])
	w.Expect(w.faults.count["00"]).To(BeNumerically("<=", writes), "more writes than were made to fail")
}
