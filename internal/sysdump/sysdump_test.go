package sysdump_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/sysdump"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const canary = "hunter22-canary"

// dump reads an archive that was collected as a user.
func dump(g Gomega, t *testing.T, as *rest.Config, namespace string) (files map[string]string, notRead []string) {
	api, err := client.New(as, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	pods, err := typedcore.NewForConfig(as)
	g.Expect(err).NotTo(HaveOccurred())
	var archive bytes.Buffer
	d := sysdump.Dump{API: api, Logs: pods, Namespace: namespace, Version: "oooi test", Tell: func(string) {}}
	notRead, err = d.Write(t.Context(), &archive, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	plain, err := gzip.NewReader(&archive)
	g.Expect(err).NotTo(HaveOccurred())
	files = map[string]string{}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, notRead
		}
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).NotTo(ContainSubstring(canary), header.Name)
		files[header.Name] = string(text)
	}
}

func TestADumpHasWhatHelpsAndNoSecret(t *testing.T) {
	g := NewWithT(t)
	cluster := envtest.For(t, true)
	api, err := client.New(cluster.Admin, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	foreign, err := envtest.Foreign()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Install(foreign...)).To(Succeed())
	for _, namespace := range []string{"clusters", "others"} {
		ours := map[string]string{names.LabelManagedBy: names.ManagedBy}
		pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "dhcp", Image: "oooi", Env: []corev1.EnvVar{{Name: "A", Value: "password=" + canary}}}}}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull", Labels: ours}, StringData: map[string]string{"a": canary}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ignition", Labels: ours}, Data: map[string]string{"a": canary}},
			&v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c1", Annotations: map[string]string{"note": "Bearer " + canary}}, Spec: v1alpha1.InfraSpec{HostedClusterRef: &v1alpha1.HostedClusterReference{Name: "c1"}, NetworkConfig: v1alpha1.NetworkConfig{NetworkAttachmentDefinition: "vlan100", NetworkAttachmentNamespace: v1alpha1.ObjectName("net-of-" + namespace), CIDR: "192.168.100.0/24"}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ours", Labels: ours}, Spec: pod},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}, Spec: pod},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-c1"}},
			&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace + "-c1", Name: "ours", Labels: ours}},
			&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace + "-c1", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace + "-c1", Name: "vm"}, Reason: "Started"},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "net-of-" + namespace}},
			&nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "net-of-" + namespace, Name: "vlan100"}},
			&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "net-of-" + namespace, Name: "ours", Labels: ours}},
		} {
			g.Expect(api.Create(t.Context(), o)).To(Succeed())
		}
	}

	files, notRead := dump(g, t, cluster.Admin, "")
	g.Expect(notRead).To(BeEmpty())
	g.Expect(files).To(And(HaveKey("oooi-sysdump/version.txt"), HaveKey("oooi-sysdump/events.txt"), HaveKey("oooi-sysdump/objects/CustomResourceDefinition.apiextensions.k8s.io.yaml")))
	g.Expect(files["oooi-sysdump/objects/Infra.hostedcluster.densityops.com.yaml"]).To(And(ContainSubstring("namespace: clusters"), ContainSubstring("namespace: others")))
	g.Expect(files["oooi-sysdump/objects/Pod.yaml"]).To(And(ContainSubstring("name: ours"), Not(ContainSubstring("name: theirs"))))
	g.Expect(files["oooi-sysdump/events.txt"]).To(And(ContainSubstring("clusters-c1/vm"), ContainSubstring("others-c1/vm")))
	g.Expect(files["oooi-sysdump/not-read.txt"]).To(ContainSubstring("VirtualMachine.kubevirt.io: the cluster does not serve them\n"))

	g.Expect(files["oooi-sysdump/objects/CustomResourceDefinition.apiextensions.k8s.io.yaml"]).To(And(ContainSubstring("served: true"), Not(ContainSubstring("openAPIV3Schema"))))

	files, notRead = dump(g, t, cluster.Admin, "others")
	g.Expect(notRead).To(ConsistOf("other namespaces than others, others-c1: the operator's, which has its log, among them"))
	g.Expect(files["oooi-sysdump/objects/NetworkPolicy.networking.k8s.io.yaml"]).To(And(ContainSubstring("namespace: others-c1"), Not(ContainSubstring("net-of-others"))), "of its control plane")
	g.Expect(files["oooi-sysdump/events.txt"]).To(ContainSubstring("others-c1/vm"))
	g.Expect(files["oooi-sysdump/objects/NetworkAttachmentDefinition.k8s.cni.cncf.io.yaml"]).To(ContainSubstring("namespace: net-of-others"))
	for name, text := range files {
		g.Expect(text).NotTo(MatchRegexp(`namespace: (net-of-)?clusters`), name)
	}

	viewer := rest.CopyConfig(cluster.Admin)
	viewer.Impersonate.UserName = "viewer"
	g.Expect(api.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:discovery"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "viewer"}}})).To(Succeed())
	g.Eventually(func() []string {
		_, notRead = dump(g, t, viewer, "")
		return notRead
	}).Should(ContainElements("Infra.hostedcluster.densityops.com: you may not list them", "Event.events.k8s.io: you may not list them", "logs: you may not list them"))
}
