package controller_test

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// ofServices is an object of DPF's service group, with a spec.
func (w dpuWorld) ofServices(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(dpf.ServiceGroupVersion.WithKind(kind))
	return named(u, w.ns, name)
}

// deployment is a DPUDeployment with services, each with a template of its name.
func (w dpuWorld) deployment(name string, services ...string) *unstructured.Unstructured {
	all := map[string]any{}
	for _, s := range services {
		all[s] = map[string]any{"serviceTemplate": s, "serviceConfiguration": s}
	}
	port := map[string]any{"serviceInterface": map[string]any{"matchLabels": map[string]any{"uplink": "p0"}}}
	return w.ofServices("DPUDeployment", name, map[string]any{
		"dpus": map[string]any{"bfb": "b1", "flavor": "f1"}, "services": all,
		"serviceChains": map[string]any{"switches": []any{map[string]any{"ports": []any{port}}}},
	})
}

func (w dpuWorld) serviceTemplate(name string) *unstructured.Unstructured {
	source := map[string]any{"repoURL": "oci://example.com/charts", "chart": "theirs", "version": "1"}
	return w.ofServices("DPUServiceTemplate", name, map[string]any{"deploymentServiceName": name, "helmChart": map[string]any{"source": source}})
}

func (w dpuWorld) serviceConfiguration(name string) *unstructured.Unstructured {
	return w.ofServices("DPUServiceConfiguration", name, map[string]any{"deploymentServiceName": name})
}

func TestABridgeSaysWhatItsDPUDeploymentWaitsFor(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.bridge()
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "cards"}
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "DPUDeploymentNotFound")
	of := func(g Gomega, b *dpuv1.DPUHCPBridge) {
		g.Expect(meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionServiceTemplatesReady)).To(BeNil())
	}
	sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), of)

	w.creates(w.deployment("cards", "hbn", "ovn"), w.serviceConfiguration("hbn"), w.serviceConfiguration("ovn"), w.serviceTemplate("ovn"))
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "ServiceTemplateNotFound")).To(ContainSubstring("needs DPUServiceTemplate hbn, which"))
	w.creates(w.serviceTemplate("hbn"))
	w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionTrue, "Found")
	w.Expect(w.api.Delete(w.ctx, w.serviceConfiguration("ovn"))).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "ServiceConfigurationNotFound")).To(ContainSubstring("needs DPUServiceConfiguration ovn, which"))
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	w.Expect(w.api.Delete(w.ctx, w.deployment("cards"))).To(Succeed())
	sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), of)
}

// runsDPF is a DPFOperatorConfig in a namespace, whose DPF is of a version that we have DPUServiceTemplates for. It goes with the test, as
// other tests share the cluster, and DPF has one.
func (w dpuWorld) runsDPF(namespace string) {
	w.t.Helper()
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deploymentMode": "host-trusted", "provisioningController": map[string]any{"enableDynamicBFCFGTemplates": true}}}}
	config.SetGroupVersionKind(dpf.OperatorGroupVersion.WithKind("DPFOperatorConfig"))
	w.creates(named(config, namespace, "dpf"))
	w.t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), config)).To(Succeed()) })
	w.reports(config, func() { config.Object["status"] = map[string]any{"version": "v26.4.1"} })
}

// hosts runs OVN-Kubernetes of a multi-arch release on the Nodes with DPUs, as OpenShift does; none of its pods is up.
func (w dpuWorld) hosts(image string) *appsv1.DaemonSet {
	w.t.Helper()
	labels := map[string]string{"app": bridge.HostOVN.Name}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: bridge.HostOVN.Namespace, Name: bridge.HostOVN.Name, Annotations: map[string]string{bridge.AnnotationHostRelease: "4.22.7"}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ovnkube-controller", Image: image}}}},
		},
	}
	release := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "00000000-0000-0000-0000-000000000000"}}
	w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ds.Namespace}}))).To(Succeed())
	w.creates(ds, release)
	w.t.Cleanup(func() { // for the next test with this API server
		for _, o := range []client.Object{ds, release} {
			w.Expect(w.api.Delete(context.Background(), o)).To(Succeed())
		}
	})
	w.reports(ds, func() {
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1}
	})
	w.reports(release, func() {
		release.Status = configv1.ClusterVersionStatus{Desired: configv1.Release{Version: "4.22.7", Image: "example.com/release@sha256:1", Architecture: configv1.ClusterVersionArchitectureMulti}, VersionHash: "1"}
	})
	return ds
}

// ovnTag is the tag of OVN in a DPUServiceTemplate.
func ovnTag(g Gomega, t *unstructured.Unstructured) string {
	tag, _, err := unstructured.NestedString(t.Object, "spec", "helmChart", "values", "dpuManifests", "image", "tag")
	g.Expect(err).NotTo(HaveOccurred())
	return tag
}

func TestABridgeKeepsDPUServiceTemplates(t *testing.T) {
	w := newDPUWorld(t)
	w.runsDPF(w.ns)
	ds := w.hosts("example.com/ovn:1")
	w.grants()
	b := w.bridge()
	b.Spec.DPUDeploymentRef, b.Spec.ManageDPUServiceTemplates = &dpuv1.DPUDeploymentReference{Name: "cards"}, true
	w.creates(w.serviceTemplate("hbn"), w.serviceConfiguration("hbn"), w.serviceConfiguration("ovn"), w.deployment("cards", "hbn", "ovn"), w.dpuCluster("d1", "example.com/hosted"), b)
	ovn := sees(w.world, w.serviceTemplate("ovn"), func(g Gomega, u *unstructured.Unstructured) { g.Expect(ovnTag(g, u)).To(Equal("1")) })
	sees(w.world, w.serviceTemplate("doca-telemetry-service"), there)
	w.hyperShift("b1", "first")
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionTrue, "NameTaken")).To(And(ContainSubstring("hbn is not this bridge's"), ContainSubstring("is being rolled out")))

	w.changes(ds, func() { ds.Spec.Template.Spec.Containers[0].Image = "example.com/ovn:2" })
	w.reports(ds, func() {
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberAvailable: 1}
	})
	sees(w.world, ovn, func(g Gomega, u *unstructured.Unstructured) { g.Expect(ovnTag(g, u)).To(Equal("2")) })
	w.changes(ovn, func() {
		w.Expect(unstructured.SetNestedField(ovn.Object, "theirs", "spec", "helmChart", "values", "more")).To(Succeed())
	})
	sees(w.world, ovn, func(g Gomega, u *unstructured.Unstructured) {
		_, more, err := unstructured.NestedString(u.Object, "spec", "helmChart", "values", "more")
		g.Expect(more).To(BeFalse())
		g.Expect(err).NotTo(HaveOccurred())
	})
	w.silent()

	w.faults.refuse("/dpuservicetemplates/")
	w.changes(b, func() { b.Spec.ManageDPUServiceTemplates = false })
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "NotApplied")).To(ContainSubstring("deleting DPUServiceTemplate " + w.ns + "/ovn"))
	w.faults.refuse("")
	w.gone(ovn)
	w.changes(b, func() { b.Spec.ManageDPUServiceTemplates = true })
	sees(w.world, ovn, there)
	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	w.tearsDown("b1")
	w.gone(b)
	w.gone(ovn)
	w.Expect(ovnTag(w, sees(w.world, w.serviceTemplate("hbn"), there))).To(BeEmpty(), "the user's own stays")
}

// Where the management cluster's release is not multi-arch, OVN is the image that the same release has for aarch64; a mirror of that release is
// asked as soon as there is one.
func TestOVNForDPUsIsLookedUp(t *testing.T) {
	w := newDPUWorld(t)
	w.runsDPF(w.ns)
	w.hosts("example.com/ovn:1")
	images := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	host := strings.TrimPrefix(images.URL, "https://")
	version := named(&configv1.ClusterVersion{}, "", "version")
	w.reports(version, func() {
		version.Status.Desired.Architecture, version.Status.Desired.Image = "", host+"/ocp/release@sha256:"+strings.Repeat("0", 64)
	})
	w.grants()
	b := w.bridge()
	b.Spec.DPUDeploymentRef, b.Spec.ManageDPUServiceTemplates, b.Spec.MachineOSImage = &dpuv1.DPUDeploymentReference{Name: "cards"}, true, osImage
	w.creates(w.serviceConfiguration("ovn"), w.deployment("cards", "ovn"), w.dpuCluster("d1", "example.com/hosted"), b)
	w.Eventually(func() string {
		return w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "HostReleaseNotMultiArch")
	}).Should(ContainSubstring(host + "/ocp/release:4.22.7-aarch64: does not exist"))

	ovn := "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + strings.Repeat("a", 64)
	release, err := crane.Image(map[string][]byte{"release-manifests/image-references": []byte(`{"spec":{"tags":[{"name":"ovn-kubernetes","from":{"name":"` + ovn + `"}}]}}`)})
	w.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(host + "/mirrored/release:4.22.7-aarch64")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(remote.Write(ref, release, remote.WithTransport(trusting()))).To(Succeed())
	w.configures(&configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: configv1.ImageTagMirrorSetSpec{
		ImageTagMirrors: []configv1.ImageTagMirrors{{Source: host + "/ocp", Mirrors: []configv1.ImageMirror{configv1.ImageMirror(host + "/mirrored")}}},
	}})
	sees(w.world, w.serviceTemplate("ovn"), func(g Gomega, u *unstructured.Unstructured) {
		g.Expect(ovnTag(g, u)).To(Equal(strings.Repeat("a", 64)))
	})
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionTrue, "HostsRollingOut")
}
