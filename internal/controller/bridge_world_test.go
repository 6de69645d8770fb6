package controller_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
)

const (
	release    = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
	newRelease = "quay.io/openshift-release-dev/ocp-release:4.20.5-multi"
	osImage    = "quay.io/example/bluefield:4.20.4"
	newOSImage = "quay.io/example/bluefield:4.20.5"
	sshKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO0nVQQ2Xr0mS9XyqJ7mQ6E1QYw3Nq3c6l1kqJt0Pq3x core\n"
)

// dpuWorld is a world with a Node, storage, an image mapping and a user's Secrets, in which DPF has a DPUCluster.
type dpuWorld struct{ *world }

// finalizer is HyperShift's, on what it has to tear down.
const finalizer = hypershift.Finalizer

func newDPUWorld(t *testing.T) dpuWorld {
	t.Helper()
	return dpuWorldIn(newWorld(t))
}

func dpuWorldIn(in *world) dpuWorld {
	in.t.Helper()
	w := dpuWorld{in}
	w.wire.to = strings.TrimSuffix(strings.TrimPrefix(w.ground.hosted(w.t).Admin.Host, "https://"), "/")
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "oooi-system"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metallb-system"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.com/fast"},
	} {
		w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, o))).To(Succeed())
	}
	w.appliesRole("metallb", "metallb-system")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "publishes"}} // hosted clusters are published at its address
	w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, node))).To(Succeed())
	w.reports(node, func() {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	w.creates(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "oooi-system", Name: w.ns + "-images"}, Data: map[string]string{"4.20.4": osImage, "4.20.5": newOSImage}},
		w.secret("pull", corev1.DockerConfigJsonKey, `{"auths":{"quay.io":{"auth":"x"}}}`), w.secret("ssh", "id_rsa.pub", sshKey),
	)
	w.t.Cleanup(w.forgetBridges)
	return w
}

// forgetBridges deletes what would occupy the next test's manager, and the DPUs, each of which says for all bridges whether something is
// being installed.
func (w dpuWorld) forgetBridges() {
	ctx := context.Background()
	for _, all := range []client.ObjectList{&dpuv1.DPUHCPBridgeList{}, &dpf.DPUList{}} {
		if err := w.api.List(ctx, all); !meta.IsNoMatchError(err) { // or their CRD went while the test ran
			w.Expect(client.IgnoreNotFound(err)).To(Succeed())
		}
		for _, o := range items(all) {
			w.Eventually(func(g Gomega) {
				asked := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				g.Expect(client.IgnoreNotFound(w.api.Patch(ctx, o, asked))).To(Succeed())
				g.Expect(client.IgnoreNotFound(w.api.Delete(ctx, o))).To(Succeed())
			}).Should(Succeed())
		}
	}
}

func (w dpuWorld) secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// grants applies config/components/dpu-bridge in the world's namespace.
func (w dpuWorld) grants() {
	w.t.Helper()
	w.appliesRole("dpu-bridge", w.ns)
}

func (w dpuWorld) dpuCluster(name, kind string) *dpf.DPUCluster {
	return &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: dpf.DPUClusterSpec{Type: kind}}
}

// dpu is a DPU of a DPUCluster, with what its CRD asks for. It has no BFB, so that nobody makes a template for it.
func (w dpuWorld) dpu(name, of string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"dpuNodeName": "host", "dpuDeviceName": name, "bfb": "", "dpuFlavor": "plain", "nodeEffect": map[string]any{"drain": true}, "serialNumber": name, "cluster": map[string]any{"name": of, "namespace": w.ns},
	}}}
	u.SetGroupVersionKind(dpf.GroupVersion.WithKind("DPU"))
	return named(u, w.ns, name)
}

// bridge is b1 of DPUCluster d1, behind MetalLB.
func (w dpuWorld) bridge() *dpuv1.DPUHCPBridge {
	return &dpuv1.DPUHCPBridge{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "b1"},
		Spec: dpuv1.DPUHCPBridgeSpec{
			DPUClusterRef: dpuv1.DPUClusterReference{Name: "d1"}, BaseDomain: "example.com", SSHKey: "ssh", PullSecret: "pull", OCPReleaseImage: release,
			ExposeThroughLoadBalancer: true, MetalLBVirtualIP: "192.0.2.10",
		},
	}
}

// bridged makes the bridge, and all that it needs.
func (w dpuWorld) bridged() {
	w.t.Helper()
	w.grants()
	w.creates(w.dpuCluster("d1", "example.com/hosted"), w.bridge())
}

// hyperShift serves a bridge's HostedCluster.
func (w dpuWorld) hyperShift(name, token string) {
	w.t.Helper()
	hc, pool := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, name), there), sees(w.world, named(&hyperv1.NodePool{}, w.ns, name), there)
	w.Expect(hypershift.Serve(w.ctx, w.api, hc, pool, w.kubeconfigOf(token))).To(Succeed())
}

// writesKubeconfig with a token, as HyperShift does when it makes or rotates a kubeconfig.
func (w dpuWorld) writesKubeconfig(name, token string) {
	w.t.Helper()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, name), there)
	w.Expect(hypershift.WriteKubeconfig(w.ctx, w.api, hc, w.kubeconfigOf(token))).To(Succeed())
}

// kubeconfigOf is a kubeconfig of the hosted cluster; a token beside the certificate tells one from another.
func (w dpuWorld) kubeconfigOf(token string) []byte {
	w.t.Helper()
	text, err := w.ground.hosted(w.t).Kubeconfig()
	w.Expect(err).NotTo(HaveOccurred())
	k := clientcmdapi.Config{}
	w.Expect(yaml.Unmarshal(text, &k)).To(Succeed())
	k.AuthInfos[0].AuthInfo.Token = token
	text, err = yaml.Marshal(k)
	w.Expect(err).NotTo(HaveOccurred())
	return text
}

// tearsDown plays HyperShift's teardown of a HostedCluster.
func (w dpuWorld) tearsDown(name string) {
	w.t.Helper()
	for _, o := range []client.Object{named(&hyperv1.NodePool{}, w.ns, name), named(&hyperv1.HostedCluster{}, w.ns, name)} {
		sees(w.world, o, func(g Gomega, o client.Object) { g.Expect(o.GetDeletionTimestamp()).NotTo(BeNil()) })
		w.changes(o, func() { controllerutil.RemoveFinalizer(o, finalizer) })
	}
	w.Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, named(&corev1.Secret{}, w.ns, name+"-admin-kubeconfig")))).To(Succeed())
}

// saysOf waits until a bridge's condition has a status and reason.
func (w dpuWorld) saysOf(name, condition string, status metav1.ConditionStatus, reason string) string {
	w.t.Helper()
	b := sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, name), func(g Gomega, b *dpuv1.DPUHCPBridge) {
		c := meta.FindStatusCondition(b.Status.Conditions, condition)
		g.Expect(c).NotTo(BeNil(), "condition %s", condition)
		g.Expect(*c).To(And(HaveField("Status", status), HaveField("Reason", reason)), "all: %v", b.Status.Conditions)
	})
	return meta.FindStatusCondition(b.Status.Conditions, condition).Message
}

// asksToJoin sends a kubelet's first CSR, with the token that is in its Ignition.
func (w dpuWorld) asksToJoin(csr, host string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + host}}, key)
	w.Expect(err).NotTo(HaveOccurred())
	admin := w.clientOf(w.ground.hosted(w.t).Admin)
	w.Expect(client.IgnoreAlreadyExists(admin.Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "may-ask"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}))).To(Succeed())
	asKubelet := rest.CopyConfig(w.ground.hosted(w.t).Admin)
	asKubelet.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
	}
	kubelet := w.clientOf(asKubelet)
	request := &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: csr}, Spec: certv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certv1.KubeAPIServerClientKubeletSignerName,
		Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth},
	}}
	w.Expect(kubelet.Create(w.ctx, request)).To(Succeed())
	w.t.Cleanup(func() { w.Expect(admin.Delete(context.Background(), request)).To(Succeed()) })
}

// injected is the Secret in the DPUCluster's namespace.
func (w dpuWorld) injected(bridge string) *corev1.Secret {
	return named(&corev1.Secret{}, w.ns, names.BridgeKubeconfig(w.ns, bridge))
}

func (w dpuWorld) dials() int {
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	return len(w.wire.dialed)
}

// left is everything in the world with a bridge's labels, by kind and name.
func (w dpuWorld) left() (all []string) {
	w.t.Helper()
	for _, list := range []client.ObjectList{
		&hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &metallb.IPAddressPoolList{}, &metallb.L2AdvertisementList{}, &dpf.DPUServiceTemplateList{},
	} {
		w.Expect(w.api.List(w.ctx, list, client.MatchingLabels{names.LabelBridgeNamespace: w.ns})).To(Succeed())
		for _, o := range items(list) {
			all = append(all, fmt.Sprintf("%T %s", o, o.GetName()))
		}
	}
	return all
}

// warned waits for a Warning Event about a bridge with a note.
func (w dpuWorld) warned(reason, note string) {
	w.t.Helper()
	w.hears(corev1.EventTypeWarning, reason, note)
}

// hears waits for an Event of a type about a bridge with a note.
func (w dpuWorld) hears(of, reason, note string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(all.Items).To(ContainElement(And(HaveField("Type", of), HaveField("Reason", reason), HaveField("Note", ContainSubstring(note)))))
	}).Should(Succeed())
}
