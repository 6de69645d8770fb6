package bridge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// authority is a CA in PEM.
func authority(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}

// trusts has OpenShift name two ConfigMaps with CAs.
func trusts(in *bridge.Input, ofRegistries, ofAll map[string]string) {
	in.ImageConfig, in.Proxy = &configv1.Image{}, &configv1.Proxy{}
	in.ImageConfig.Spec.AdditionalTrustedCA.Name, in.Proxy.Spec.TrustedCA.Name = "registries", "all"
	in.RegistryCAs, in.TrustedCA = &corev1.ConfigMap{Data: ofRegistries}, &corev1.ConfigMap{Data: ofAll}
}

func TestEachRegistryHasItsCA(t *testing.T) {
	g, in := NewWithT(t), looksUp(t)
	quay, mirror, all := "# of quay\n"+authority(t), authority(t), authority(t)+authority(t)
	trusts(&in, map[string]string{"quay.io": quay, "mirror.example..5000": mirror, "mirror.example": "of another port", "unused.example": "nonsense"}, map[string]string{"ca-bundle.crt": all})
	in.TagMirrors = []configv1.ImageTagMirrorSet{{Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: []configv1.ImageTagMirrors{{Source: layers, Mirrors: []configv1.ImageMirror{"mirror.example:5000/layers", "plain.example/layers"}}}}}}
	ofRegistries, ofAll := in.CAKeys()
	g.Expect([]string{ofRegistries.String(), ofAll.String()}).To(Equal([]string{"openshift-config/registries", "openshift-config/all"}))
	g.Expect(in.Lookup()).To(HaveValue(And(HaveField("TrustedCA", all), HaveField("Images", Equal([]bridge.Place{
		{Repository: "mirror.example:5000/layers", CA: mirror}, {Repository: "plain.example/layers"}, {Repository: layers, Login: `{"auth":"x"}`, CA: quay},
	})))))

	in.Bridge.Spec.OCPReleaseImage = "quay.io/ocp/release@" + digest
	g.Expect(in.Lookup().Releases).To(ConsistOf(bridge.Place{Repository: "quay.io/ocp/release", Login: `{"auth":"x"}`, CA: quay}))

	in.Proxy.Spec.TrustedCA.Name, in.TrustedCA = "", nil // most clusters name none
	in.ImageConfig.Spec.AdditionalTrustedCA.Name, in.RegistryCAs = "", nil
	g.Expect(in.Lookup().Images).To(HaveEach(HaveField("CA", "")))
}

func TestCAsThatCannotBeUsedAreNamed(t *testing.T) {
	good := authority(t)
	for name, c := range map[string]struct {
		is    func(in *bridge.Input)
		says  string
		field string
	}{
		"a ConfigMap of registries that is not there": {func(in *bridge.Input) { in.RegistryCAs = nil },
			"TrustedCANotFound: spec.additionalTrustedCA of image.config.openshift.io/cluster names ConfigMap openshift-config/registries, which does not exist: create it, or have the name removed", "spec.additionalTrustedCA of image.config.openshift.io/cluster"},
		"a ConfigMap of the proxy that is not there": {func(in *bridge.Input) { in.TrustedCA = nil },
			"TrustedCANotFound: spec.trustedCA of proxy.config.openshift.io/cluster names ConfigMap openshift-config/all, which does not exist: create it, or have the name removed", "spec.trustedCA of proxy.config.openshift.io/cluster"},
		"one without its key": {func(in *bridge.Input) { in.TrustedCA.Data = map[string]string{"ca.crt": good} },
			"TrustedCAInvalid: ConfigMap openshift-config/all, which spec.trustedCA of proxy.config.openshift.io/cluster names, has no key ca-bundle.crt: write the CAs there, in PEM", "ca-bundle.crt"},
		"no PEM": {func(in *bridge.Input) { in.RegistryCAs.Data["quay.io"] = "to be told" },
			"TrustedCAInvalid: key quay.io of ConfigMap openshift-config/registries, which spec.additionalTrustedCA of image.config.openshift.io/cluster names, has no certificate in PEM: correct it", "quay.io"},
		"one of two": {func(in *bridge.Input) {
			in.TrustedCA.Data["ca-bundle.crt"] += strings.Replace(good, "MI", "IM", 1)
		}, "TrustedCAInvalid: key ca-bundle.crt of ConfigMap openshift-config/all, which spec.trustedCA of proxy.config.openshift.io/cluster names, has a certificate that cannot be read, number 2: correct it", "ca-bundle.crt"},
		"a key": {func(in *bridge.Input) {
			in.RegistryCAs.Data["quay.io"] = good + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
		}, `TrustedCAInvalid: key quay.io of ConfigMap openshift-config/registries, which spec.additionalTrustedCA of image.config.openshift.io/cluster names, has a block "PRIVATE KEY", and may have certificates only: correct it`, "quay.io"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), looksUp(t)
			trusts(&in, map[string]string{"quay.io": good}, map[string]string{"ca-bundle.crt": good})
			g.Expect(in.Lookup()).NotTo(BeNil())
			c.is(&in)
			g.Expect(in.Lookup()).To(BeNil(), "nobody is asked")
			p := bridge.Of(in)
			g.Expect(p.Frozen).To(BeTrue(), "what runs stays")
			g.Expect(aboutImage(p)).To(HaveLen(1))
			f := aboutImage(p)[0]
			g.Expect(f.Reason + ": " + f.Message).To(Equal(c.says))
			g.Expect(f.Field).To(Equal(c.field))

			in.Bridge.Spec.MachineOSImage = "example.com/os:1"
			g.Expect(aboutImage(bridge.Of(in))).To(ConsistOf(HaveField("Reason", "MachineOSImage")), "the gate blocks no bridge that names its own image")
		})
	}
}
