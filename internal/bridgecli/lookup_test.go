package bridgecli_test

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// cluster is one whose configuration trusts a CA for one registry.
type cluster struct {
	client.Reader
	registry, authority string
	secretless          bool
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *configv1.Image:
		o.Spec.AdditionalTrustedCA.Name = "cas"
	case *configv1.Proxy:
	case *corev1.ConfigMap:
		o.Data = map[string]string{strings.Replace(c.registry, ":", "..", 1): c.authority}
	case *corev1.Secret:
		if c.secretless {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
		}
	}
	return nil
}

func (cluster) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestAPlanAsksForTheImage(t *testing.T) {
	g := NewWithT(t)
	images := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	host := strings.TrimPrefix(images.URL, "https://")
	api := cluster{registry: host, authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw}))}
	p := platform()
	p.Bridge.Spec.PullSecret = "pull"
	asks := func() bridge.Answer {
		answer, err := bridgecli.LookUp(t.Context(), api, *p, next)
		g.Expect(err).NotTo(HaveOccurred())
		return answer
	}
	g.Expect(asks()).To(BeZero(), "the ConfigMap has the release")
	p.Images = map[string]string{"repository": host + "/layers", "cache": "oooi-images"}
	g.Expect(asks()).To(Equal(bridge.Answer{Reason: bridge.ImageNotFound, Message: host + "/layers:4.22.1: does not exist"}))
	ref, err := name.ParseReference(host + "/layers:4.22.1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(ref, empty.Image, remote.WithTransport(images.Client().Transport))).To(Succeed())
	g.Expect(asks()).To(Equal(bridge.Answer{Image: host + "/layers:4.22.1"}))
	g.Expect(p.Images).To(HaveKey("cache"), "what was read is as it was")

	api.secretless = true
	g.Expect(asks()).To(And(HaveField("Reason", bridge.LookingUp), HaveField("Message", ContainSubstring("you may not read"))))
	api.secretless, api.authority = false, "to be told"
	g.Expect(asks()).To(HaveField("Message", ContainSubstring("CAs of the cluster cannot be used")))
	p.Bridge.Spec.MachineOSImage = "a.b/c:d"
	g.Expect(asks()).To(BeZero())
}
