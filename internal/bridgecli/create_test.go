package bridgecli_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

func TestABridgeIsAppliedWithItsSecrets(t *testing.T) {
	g := NewWithT(t)
	cluster := envtest.For(t, true)
	api, err := client.New(cluster.Admin, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	at := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }
	order := bridgecli.Order{
		Namespace: "default", Name: "dpu1", DPUCluster: "dpus", PullSecret: []byte(`{"auths": {"quay.io": {"auth": "dTpw"}}}`),
		SSHKey: []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"),
		Spec:   dpuv1.DPUHCPBridgeSpec{BaseDomain: "example.com", OCPReleaseImage: "quay.io/ocp/release:4.20.4-multi"},
	}
	var told []string
	apply := func(options ...client.ApplyOption) error {
		told = nil
		return order.Apply(t.Context(), api, api, func(what string) { told = append(told, what) }, options...)
	}
	bridge, pull, key := &dpuv1.DPUHCPBridge{}, &corev1.Secret{}, &corev1.Secret{}

	g.Expect(apply(client.DryRunAll)).To(Succeed())
	g.Expect(api.Get(t.Context(), at("dpu1"), bridge)).To(MatchError(apierrors.IsNotFound, "a dry run leaves nothing"))
	g.Expect(api.Get(t.Context(), at("dpu1-ssh-key"), key)).To(MatchError(apierrors.IsNotFound, "a dry run leaves nothing"))

	g.Expect(apply()).To(Succeed())
	g.Expect(told).To(Equal([]string{"Secret default/dpu1-ssh-key", "Secret default/dpu1-pull-secret", "DPUHCPBridge default/dpu1"}))
	g.Expect(api.Get(t.Context(), at("dpu1"), bridge)).To(Succeed())
	g.Expect(bridge.Spec.ControlPlaneAvailabilityPolicy).To(Equal(dpuv1.HighlyAvailable), "what is not ordered is the API's default")
	g.Expect(api.Get(t.Context(), at(string(bridge.Spec.SSHKey)), key)).To(Succeed())
	g.Expect(api.Get(t.Context(), at(string(bridge.Spec.PullSecret)), pull)).To(Succeed())
	g.Expect(pull.Type).To(Equal(corev1.SecretTypeDockerConfigJson))

	order.Spec.OCPReleaseImage, order.PullSecret = "quay.io/ocp/release:4.20.5-multi", []byte(`{"auths": {"mirror:5000": {"auth": "dTpw"}}}`)
	g.Expect(apply()).To(Succeed())
	g.Expect(api.Get(t.Context(), at("dpu1"), bridge)).To(Succeed())
	g.Expect(bridge.Spec.OCPReleaseImage).To(Equal(order.Spec.OCPReleaseImage))
	g.Expect(api.Get(t.Context(), at("dpu1-pull-secret"), pull)).To(Succeed())
	g.Expect(pull.Data[corev1.DockerConfigJsonKey]).To(Equal(order.PullSecret))

	order.Spec.BaseDomain = "example.org"
	g.Expect(apply()).To(MatchError(And(ContainSubstring("applying DPUHCPBridge default/dpu1: "), ContainSubstring("baseDomain is set once"))))
	g.Expect(told).To(BeEmpty())

	order.Name, order.Spec.MetalLBVirtualIP = "dpu2", "192.0.2.10"
	g.Expect(apply()).To(MatchError(ContainSubstring("applying DPUHCPBridge default/dpu2: ")), "there is no load balancer")
	g.Expect(api.Get(t.Context(), at("dpu2-ssh-key"), key)).To(MatchError(apierrors.IsNotFound, "what is refused leaves nothing"))
}
