package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const (
	inside = "image-registry.openshift-image-registry.svc:5000/oooi-images/layers-4.20.4:4.20.4"
	route  = "default-route.apps.example.com"
)

// caches has images copied into OpenShift's own registry.
func caches(in *bridge.Input) {
	in.Mapping.Data[bridge.CacheKey] = "oooi-images\n"
	in.ImageConfig = &configv1.Image{Status: configv1.ImageStatus{InternalRegistryHostname: "image-registry.openshift-image-registry.svc:5000", ExternalRegistryHostnames: []string{route, "registry.example.com"}}}
}

func TestWhereAnImageIsCopiedTo(t *testing.T) {
	g, in := NewWithT(t), looksUp(t)
	g.Expect(in.Lookup().Cache).To(BeNil(), "nobody asked for it")
	caches(&in)
	g.Expect(in.Lookup().Found("4.20.4")).To(Equal(route + "/oooi-images/layers-4.20.4:4.20.4"))
	ofServices, ofIngress := in.CacheCAKeys()
	g.Expect([]string{ofServices.String(), ofIngress.String()}).To(Equal([]string{"oooi-images/openshift-service-ca.crt", "openshift-config-managed/default-ingress-cert"}))
	in.ServiceCA, in.IngressCA = &corev1.ConfigMap{Data: map[string]string{"service-ca.crt": "service"}}, &corev1.ConfigMap{Data: map[string]string{"ca-bundle.crt": "ingress"}}
	in.PullSecret.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"x"},"` + route + `":{"auth":"y"}}}`)
	is := in.Lookup()
	g.Expect(is.Repository).To(Equal(layers), "it is found where it was")
	g.Expect(is.Cache.Pushed("4.20.4")).To(Equal(inside))
	g.Expect(is.Cache.Push).To(And(HaveField("CA", "service"), HaveField("Login", "")), "nobody pushes with the login of a bridge")
	g.Expect(is.Cache.Pull).To(And(HaveField("CA", "ingress"), HaveField("Login", `{"auth":"y"}`)))
	g.Expect(is.Cache.Account.String()).To(Equal("oooi-images/oooi-image-cache"))

	own := authority(t)
	trusts(&in, map[string]string{route: own}, map[string]string{"ca-bundle.crt": own})
	caches(&in)
	in.ImageConfig.Spec.AdditionalTrustedCA.Name = "registries"
	g.Expect(in.Lookup().Cache.Pull.CA).To(Equal(own), "the route may have a certificate of its own")
}

func TestACacheThatThereCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(in *bridge.Input)
		says string
	}{
		"no OpenShift": {func(in *bridge.Input) { in.ImageConfig = nil }, "CacheNotAvailable: ConfigMap oooi-system/images has key cache, but the cluster runs no registry of its own (image.config.openshift.io/cluster reports no internalRegistryHostname): set managementState: Managed in configs.imageregistry.operator.openshift.io/cluster, or remove the key"},
		"Removed":      {func(in *bridge.Input) { in.ImageConfig.Status = configv1.ImageStatus{} }, "CacheNotAvailable: ConfigMap oooi-system/images has key cache, but the cluster runs no registry of its own (image.config.openshift.io/cluster reports no internalRegistryHostname): set managementState: Managed in configs.imageregistry.operator.openshift.io/cluster, or remove the key"},
		"no route":     {func(in *bridge.Input) { in.ImageConfig.Status.ExternalRegistryHostnames = nil }, "CacheNotExposed: ConfigMap oooi-system/images has key cache, but DPUs do not reach the cluster's registry (image.config.openshift.io/cluster reports no externalRegistryHostnames): set defaultRoute: true in configs.imageregistry.operator.openshift.io/cluster, or remove the key"},
		"no namespace": {func(in *bridge.Input) { in.Mapping.Data[bridge.CacheKey] = "quay.io/cache" }, "CacheInvalid: key cache of ConfigMap oooi-system/images is no name of a namespace: write the one to which images are copied, e.g. oooi-images, or remove the key"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), looksUp(t)
			caches(&in)
			c.is(&in)
			g.Expect(in.Lookup()).To(BeNil())
			p := bridge.Of(in)
			g.Expect(p.Frozen).To(BeTrue(), "what runs stays")
			g.Expect(aboutImage(p)).To(HaveLen(1))
			g.Expect(aboutImage(p)[0].Reason + ": " + aboutImage(p)[0].Message).To(Equal(c.says))
			in.Bridge.Spec.MachineOSURL = "example.com/os:1"
			g.Expect(aboutImage(bridge.Of(in))).To(ConsistOf(HaveField("Reason", "MachineOSImage")), "the gate blocks no bridge that names its own image")
		})
	}
}

// What runs stays while it is looked whether the copy is still that of its source; a DPU that gets nothing is told at once.
func TestACopyStaysWhileItIsCompared(t *testing.T) {
	for reason, stays := range map[string]bool{"": true, bridge.Caching: true, bridge.CacheFailed: true, bridge.RegistryUnreachable: true, bridge.CacheNotPulled: false, bridge.ImageNotFound: false} {
		g, in := NewWithT(t), looksUp(t)
		caches(&in)
		in.Answer = bridge.Answer{Reason: reason, Message: "as it is"}
		g.Expect(bridge.Of(in).Image).To(BeEmpty(), reason)
		in.Bridge.Status.BlueFieldContainerImage = route + "/oooi-images/layers-4.20.4:4.20.4"
		in.Bridge.Status.Conditions = append(in.Bridge.Status.Conditions, metav1.Condition{Type: dpuv1.ConditionBlueFieldContainerImageAvailable, Status: metav1.ConditionTrue, Reason: "Found"})
		g.Expect(bridge.Of(in).Image != "").To(Equal(stays), reason)
		delete(in.Mapping.Data, bridge.CacheKey)
		g.Expect(bridge.Of(in).Image).To(BeEmpty(), "a copy is not the image itself")
	}
}

func TestCopiesGoLast(t *testing.T) {
	g, in := NewWithT(t), looksUp(t)
	cached := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "layers-4.20.4"}}
	r := bridge.Remains{Input: in, Cached: []bridge.Object{cached}}
	g.Expect(bridge.End(r).Others).NotTo(ContainElement(cached), "the hosted cluster goes first")
	r.HostedCluster, r.NodePool, r.DPUCluster = nil, nil, nil
	g.Expect(bridge.End(r)).To(And(HaveField("Others", ConsistOf(cached)), HaveField("Reason", dpuv1.ReasonCleanupInProgress)))
	r.Cached = nil
	g.Expect(bridge.End(r)).To(BeZero())
}
