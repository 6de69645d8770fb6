package bridge_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

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

	in.Proxy.Spec.HTTPSProxy, in.Proxy.Status = "http://to-be-judged.example", configv1.ProxyStatus{HTTPProxy: "http://plain.example", HTTPSProxy: "http://proxy.example:3128", NoProxy: ".cluster.local,.svc"}
	g.Expect(in.Lookup().Proxy).To(Equal(bridge.Proxy{HTTPS: "http://proxy.example:3128", Except: ".cluster.local,.svc"}))

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

// DPUs pull the image that a bridge or the mapping names, too, which nobody looks up.
func TestDPUsTrustTheRegistryOfTheirImage(t *testing.T) {
	ca, ingress := authority(t), authority(t)
	pullCA := func(in bridge.Input) string {
		p := bridge.Of(in)
		NewWithT(t).Expect(p.Templates.Apply).To(HaveLen(1))
		text := p.Templates.Apply[0].(*accore.ConfigMapApplyConfiguration).Data["BF_CFG_TEMPLATE"]
		return caIn(t, text, "quay.io:8443")
	}
	g, in := NewWithT(t), templating(t)
	in.Bridge.Spec.MachineOSImage = "quay.io:8443/example/os:1"
	g.Expect(pullCA(in)).To(BeEmpty(), "most registries need none")
	trusts(&in, map[string]string{"quay.io..8443": ca, "quay.io": "nonsense"}, map[string]string{})
	g.Expect(pullCA(in)).To(Equal(ca))
	in.RegistryCAs.Data = nil
	in.ImageConfig.Status.ExternalRegistryHostnames = []string{"quay.io:8443"}
	in.IngressCA = &corev1.ConfigMap{Data: map[string]string{"ca-bundle.crt": ingress}}
	g.Expect(pullCA(in)).To(Equal(ingress), "OpenShift's own registry, at its route")

	in.Templates.Existing = applied(bridge.Of(in))
	in.RegistryCAs.Data = map[string]string{"quay.io..8443": "to be told"}
	p := bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(Equal([]string{"TrustedCAInvalid"}))
	g.Expect(p.Templates).To(Equal(bridge.Templating{Served: 1}), "the last good template stays")
}

// caIn is the CA of a registry in the target that a template installs.
func caIn(t *testing.T, template, registry string) string {
	t.Helper()
	g := NewWithT(t)
	live := files(g, []byte(template))
	target := files(g, []byte(live["/var/target.ign"]))
	return target["/etc/containers/certs.d/"+registry+"/ca.crt"]
}

// files of an ignition whose contents are gzip in base64, by path.
func files(g Gomega, text []byte) map[string]string {
	var config struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source, Compression string }
			}
		}
	}
	g.Expect(json.Unmarshal(text, &config)).To(Succeed())
	all := map[string]string{}
	for _, f := range config.Storage.Files {
		if f.Contents.Compression != "gzip" {
			continue
		}
		zipped, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f.Contents.Source, "data:;base64,"))
		g.Expect(err).NotTo(HaveOccurred())
		reader, err := gzip.NewReader(bytes.NewReader(zipped))
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		all[f.Path] = string(content)
	}
	return all
}

// someCA is a CA that no test connects with.
const someCA = `-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUZHRNNXp5UbcIU9sISJY7Uzfssx4wCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTI3MTE1ODI4WhgPMjEyNjExMDMxMTU4Mjha
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf3LI3/bW
tdSjmI7+Llr6eJJCmaZkkFKudh6aTjhFeRileVw4j5tMBHNOk5rOCEBxKWsNrASE
31to0JBkbGouuKNTMFEwHQYDVR0OBBYEFA25lbY/QO33fSBROS3XHuFOq6u3MB8G
A1UdIwQYMBaAFA25lbY/QO33fSBROS3XHuFOq6u3MA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgHDMghMFOooAP8XRrXhzUPwtgaFMDbTJHFPP0EC2O
ZA0CIQD3tZKX+Xt81QSELRZn7z+aFOmZ/KbQahLFgY/48fntoQ==
-----END CERTIFICATE-----
`
