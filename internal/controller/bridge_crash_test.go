package controller_test

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// crashWorld has bridges that are alike: bNN of DPUCluster dNN, with a DPUDeployment in a namespace of its own, NAMESPACE-dNN, and its image in
// a registry, from which it is copied to OpenShift's.
type crashWorld struct {
	templateWorld
	cache string // the address of OpenShift's registry
}

func newCrashWorld(t *testing.T) crashWorld {
	t.Helper()
	w := crashWorld{templateWorld: newTemplateWorld(t)}
	w.SetDefaultEventuallyTimeout(5 * time.Minute)
	w.grants()
	w.hosts("example.com/ovn:1")
	working := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(working.Close)
	repository := strings.TrimPrefix(working.URL, "https://") + "/layers"
	for _, version := range []string{"4.20.4", "4.20.5"} {
		ref, err := name.ParseReference(repository + ":" + version)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(remote.Write(ref, empty.Image, remote.WithTransport(trusting()))).To(Succeed())
	}
	mapping := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images")
	w.caches()
	w.changes(mapping, func() { mapping.Data = map[string]string{"repository": repository, "cache": w.ns} })
	w.logsIn("x")
	w.runsAgain()
	return w
}

// caches has OpenShift run a registry.
func (w *crashWorld) caches() {
	w.t.Helper()
	config := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	w.configures(config)
	theirs := w.openShiftsRegistry()
	theirs.cuts.Store(3)
	w.cache = theirs.host
	w.reports(config, func() {
		config.Status.InternalRegistryHostname, config.Status.ExternalRegistryHostnames = w.cache, []string{w.cache}
	})
	w.creates(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "oooi-image-cache"}})
	w.appliesRole("image-cache", w.ns)
}

// logsIn gives the bridges' pull secret a login for DPUs at OpenShift's registry, and another one.
func (w crashWorld) logsIn(auth string) {
	w.t.Helper()
	pull := named(&corev1.Secret{}, w.ns, "pull")
	w.changes(pull, func() {
		pull.Data[corev1.DockerConfigJsonKey] = fmt.Appendf(nil, `{"auths":{%q:{"auth":"eDp5"},"quay.io":{"auth":%q}}}`, w.cache, auth)
	})
}

func (w crashWorld) numberedBridge(n int) *dpuv1.DPUHCPBridge {
	b := w.dpuWorld.numberedBridge(n)
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Namespace: v1alpha1.ObjectName(fmt.Sprintf("%s-d%02d", w.ns, n)), Name: "ovn"}
	b.Spec.ManageDPUServiceTemplates, b.Spec.FlannelEnabled = true, new(true)
	return b
}

// begins makes a bridge, and what it needs.
func (w crashWorld) begins(n int) {
	w.t.Helper()
	b := w.numberedBridge(n)
	own := string(b.Spec.DPUDeploymentRef.Namespace)
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}})
	w.appliesRole("dpu-bridge", own)
	for _, o := range w.toInstall(own) {
		o.SetAnnotations(map[string]string{dpf.AnnotationSkipSizeCheck: "", names.AnnotationAllowedNamespaces: w.ns})
		w.creates(o)
	}
	w.creates(w.dpuCluster(string(b.Spec.DPUClusterRef.Name), "example.com/hosted"), b)
}

// isServed plays HyperShift for a bridge's new HostedCluster.
func (w crashWorld) isServed(n int) {
	w.t.Helper()
	name := w.numberedBridge(n).Name
	w.hyperShift(name, "first")
	w.appliesRole("dpu-bridge", w.ignites(name))
}

// image is all that there is of a bridge, without what differs between bridges.
func (w crashWorld) image(n int) string {
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
	services := &dpf.DPUServiceTemplateList{}
	w.Expect(w.api.List(w.ctx, services, ours)).To(Succeed())
	var made []string
	for _, t := range services.Items {
		made = append(made, t.Name)
	}
	all := []any{made, hc.Spec, np.Spec, cluster.Spec, meta.IsStatusConditionTrue(cluster.Status.Conditions, dpf.ConditionCreated), pool.Spec, announced.Spec}
	for _, m := range maps.Items {
		if m.Labels[names.LabelBridgeTemplate] == "" { // its text has the NodePool's token, and the flavor's UID
			all = append(all, m.Name, m.Data)
		}
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

// settledAt waits until a bridge has a release, its only template is made from the ignition of a token, and DPF has a kubeconfig.
func (w crashWorld) settledAt(n int, image, ignition, token string) {
	w.t.Helper()
	b := w.numberedBridge(n)
	sees(w.world, w.injected(b.Name), func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: " + token))
	})
	sees(w.world, named(&hyperv1.NodePool{}, w.ns, b.Name), func(g Gomega, np *hyperv1.NodePool) { g.Expect(np.Spec.Release.Image).To(Equal(image)) })
	w.saysOf(b.Name, dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.Eventually(func(g Gomega) {
		all := &corev1.ConfigMapList{}
		g.Expect(w.api.List(w.ctx, all, client.MatchingLabels{names.LabelBridge: b.Name, names.LabelBridgeNamespace: w.ns, names.LabelBridgeTemplate: "true"})).To(Succeed())
		g.Expect(all.Items).To(ConsistOf(And(HaveField("Namespace", w.dpf), HaveField("Annotations", HaveKeyWithValue(names.AnnotationTemplateRelease, image)),
			HaveField("Data", HaveKeyWithValue(dpf.TemplateKey, ContainSubstring(ignition))))))
	}).Should(Succeed())
	w.saysOf(b.Name, templated, metav1.ConditionTrue, "Configured")
	w.saysOf(b.Name, dpuv1.ConditionServiceTemplatesReady, metav1.ConditionTrue, "HostsRollingOut")
}

// copied waits until a bridge has the newest pull secret, and no other.
func (w crashWorld) copied(n int) {
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

// crashes has managers die for as many bridges as this: for bridge n before its nth write, and at each so many writes later; the answer to
// another is lost. They also die before the first write of each kind. For bridge 00 none dies.
const crashes = 8

func eachBridge(do func(n int)) {
	for n := range crashes + 1 {
		do(n)
	}
}

// under has managers die while something is done.
func (w crashWorld) under(what string, do func()) {
	w.t.Helper()
	all := map[string]fault{forAll: {kills: 1 << 30}}
	for n := 1; n <= crashes; n++ {
		all[fmt.Sprintf("%02d", n)] = fault{kills: n, unheard: crashes + 1 - n, every: crashes}
	}
	w.faults.since(all)
	do()
	kinds, without := w.faults.survived()
	w.t.Logf("%s: %d kinds of writes for a bridge", what, kinds)
	w.Expect(kinds).To(BeNumerically(">", 0))
	w.Expect(without).To(BeEmpty(), "writes before which no manager died")
}

// runsAt plays HyperShift and waits until all bridges have a release, and a kubeconfig with a token.
func (w crashWorld) runsAt(image, token string) {
	w.t.Helper()
	ignition := func(n int) string { return fmt.Sprintf("1a2b%02d%02x", n, len(token)) }
	eachBridge(func(n int) { w.rolledOut(w.numberedBridge(n).Name, image, ignition(n)) })
	eachBridge(func(n int) { w.settledAt(n, image, ignition(n), token) })
	w.silent()
}

// A bridge reaches the same end no matter before which write its manager is killed: made, given another kubeconfig and pull secret, upgraded,
// deleted.
func TestABridgeComesToTheSameEndWhereverItsManagerDies(t *testing.T) {
	w := newCrashWorld(t)
	w.offers("v1", "ImageStream.image.openshift.io")
	w.under("made", func() {
		eachBridge(w.begins)
		eachBridge(w.isServed)
		w.runsAt(release, "first")
	})
	w.under("given other Secrets", func() {
		w.logsIn("y")
		eachBridge(func(n int) { w.writesKubeconfig(w.numberedBridge(n).Name, "second") })
		eachBridge(w.copied)
		eachBridge(func(n int) {
			sees(w.world, w.injected(w.numberedBridge(n).Name), func(g Gomega, s *corev1.Secret) {
				g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: second"))
			})
		})
		w.silent()
	})
	former, present := w.imageStream("layers-4.20.4"), w.imageStream("layers-4.20.5")
	w.creates(former, present) // as OpenShift's registry does at the first push
	w.under("upgraded", func() {
		eachBridge(func(n int) {
			b := w.numberedBridge(n)
			w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
		})
		w.runsAt(newRelease, "second")
		eachBridge(func(n int) { w.ran(w.numberedBridge(n).Name, newRelease, release) })
		w.gone(former)
	})
	want := w.image(0)
	w.Expect(want).To(And(ContainSubstring(w.cache+"/"+w.ns+"/layers-4.20.5:4.20.5"), ContainSubstring("allocateNodeCIDRs: Enabled"), ContainSubstring("doca-telemetry-service")))
	eachBridge(func(n int) { w.Expect(w.image(n)).To(Equal(want), "bridge %d", n) })

	card := func(n int) client.Object {
		return w.dpu(fmt.Sprintf("card-%d", n), string(w.numberedBridge(n).Spec.DPUClusterRef.Name))
	}
	eachBridge(func(n int) { w.creates(card(n)) })
	w.under("deleted", func() {
		eachBridge(func(n int) { w.Expect(w.api.Delete(w.ctx, w.numberedBridge(n))).To(Succeed()) })
		eachBridge(func(n int) {
			w.saysOf(w.numberedBridge(n).Name, dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupDPUsAttached)
			w.Expect(w.api.Delete(w.ctx, card(n))).To(Succeed())
		})
		eachBridge(func(n int) { w.tearsDown(w.numberedBridge(n).Name) })
		eachBridge(func(n int) { w.gone(w.numberedBridge(n)) })
	})
	w.gone(present)
	w.Expect(w.left()).To(BeEmpty())
	eachBridge(func(n int) {
		sees(w.world, w.dpuCluster(string(w.numberedBridge(n).Spec.DPUClusterRef.Name), ""), func(g Gomega, c *dpf.DPUCluster) { g.Expect(c.Spec.Kubeconfig).To(BeEmpty()) })
	})
	w.uninstalls("image.openshift.io")
}

// Nor does it matter when a hosted cluster is taken over: it stays the same, with its key.
func TestAHostedClusterIsTakenOverWhereverTheManagerDies(t *testing.T) {
	w := newCrashWorld(t)
	uids := map[string]types.UID{}
	eachBridge(func(n int) {
		for _, o := range w.orphaned(w.ns, w.numberedBridge(n).Name) {
			if hc, is := o.(*hyperv1.HostedCluster); is {
				hc.Annotations = map[string]string{names.AnnotationAdoptBy: w.ns + "/" + hc.Name}
				hc.Spec.Networking.AllocateNodeCIDRs = new(hyperv1.AllocateNodeCIDRsEnabled) // as the bridge says: HyperShift never changes it
			}
			w.creates(o)
			uids[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetUID()
		}
	})
	w.under("taken over", func() {
		eachBridge(w.begins)
		eachBridge(func(n int) {
			hc := named(&hyperv1.HostedCluster{}, w.ns, w.numberedBridge(n).Name)
			sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) {
				g.Expect(hc.Labels).To(HaveKeyWithValue(names.LabelBridge, hc.Name))
				g.Expect(hc.Generation).To(BeNumerically(">", 1), "the bridge has applied it: HyperShift, which is played once, reports on what it is now")
			})
			w.isServed(n)
		})
		w.runsAt(release, "first")
	})
	want := w.image(0)
	eachBridge(func(n int) {
		w.Expect(w.image(n)).To(Equal(want), "bridge %d", n)
		for _, o := range w.orphaned(w.ns, w.numberedBridge(n).Name) {
			sees(w.world, o, there)
			w.Expect(o.GetUID()).To(Equal(uids[fmt.Sprintf("%T %s", o, o.GetName())]))
			if key, is := o.(*corev1.Secret); is {
				w.Expect(key.Data[hyperv1.AESCBCKeySecretKey][0]).To(BeEquivalentTo(7), "another key would make etcd unreadable")
			}
		}
	})
}
