package bridge_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestZeroTrustDPUsDownloadFromDPFsRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(*dpf.ProvisioningController, *bridge.Input)
		want string // empty: RegistryInvalid
	}{
		"the load balancer's address": {func(p *dpf.ProvisioningController, _ *bridge.Input) {
			p.Registry = dpf.Registry{LoadBalancerAddress: "http://192.0.2.8/", Address: "http://192.0.2.7:5000"}
		}, "http://192.0.2.8"},
		"an address":                  {func(p *dpf.ProvisioningController, _ *bridge.Input) { p.Registry.Address = "http://192.0.2.7:5000" }, "http://192.0.2.7:5000"},
		"an address without a port":   {func(p *dpf.ProvisioningController, _ *bridge.Input) { p.Registry.Address = "https://192.0.2.7/" }, "https://192.0.2.7:30081"},
		"one without a port, in IPv6": {func(p *dpf.ProvisioningController, _ *bridge.Input) { p.Registry.Address = "[2001:db8::7]" }, "http://[2001:db8::7]:30081"},
		"one without a port, with a path": {func(p *dpf.ProvisioningController, _ *bridge.Input) {
			p.Registry.Address = "http://dpf.example.com/bfb"
		}, "http://dpf.example.com:30081/bfb"},
		"one without a port, of DPF 25.10": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Configs[0].Status.Version = "http://192.0.2.7", "v25.10.1"
		}, "http://192.0.2.7"},
		"one without a port, of DPF 26.4": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Configs[0].Status.Version = "http://192.0.2.7", "v26.4.0"
		}, "http://192.0.2.7:30081"},
		"one without a port, of a build of DPF 26.4": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Configs[0].Status.Version = "http://192.0.2.7", "26.4.0-298f9443"
		}, "http://192.0.2.7:30081"},
		"one without a port, no node port": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Registry = "http://192.0.2.7", nil
		}, "http://192.0.2.7"},
		"an address, by HTTPS": {func(p *dpf.ProvisioningController, _ *bridge.Input) { p.Registry.Address = "https://192.0.2.7:5000" }, "https://192.0.2.7:5000"},
		"an address without a scheme, of a Service that speaks HTTPS": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Registry.Spec.Ports[1].Name = "192.0.2.7", "https"
		}, "https://192.0.2.7:30081"},
		"an address by HTTP, of a Service that speaks HTTPS": {func(p *dpf.ProvisioningController, in *bridge.Input) {
			p.Registry.Address, in.Templates.Registry.Spec.Ports[1].Name = "http://192.0.2.7", "https"
		}, "http://192.0.2.7:30081"},
		"a node port that speaks HTTPS": {func(_ *dpf.ProvisioningController, in *bridge.Input) {
			in.Templates.Registry.Spec.Ports[1].Name = "https"
		}, "https://[2001:db8::1]:30081"},
		"of DPF before 26.4": {func(p *dpf.ProvisioningController, _ *bridge.Input) {
			p.InstallInterface.InstallViaRedfish.BFBRegistryAddress = "192.0.2.6:30080"
		}, "http://192.0.2.6:30080"},
		"a node port": {func(*dpf.ProvisioningController, *bridge.Input) {}, "http://[2001:db8::1]:30081"},
		"no node port": {func(_ *dpf.ProvisioningController, in *bridge.Input) {
			in.Templates.Registry.Spec.Ports[1].NodePort = 0
		}, ""},
		"no Service": {func(_ *dpf.ProvisioningController, in *bridge.Input) { in.Templates.Registry = nil }, ""},
		"no Node's Ready": {func(_ *dpf.ProvisioningController, in *bridge.Input) {
			in.Nodes[0].Status.Conditions[0].Status = "False"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), templating(t)
			in.Templates.Configs[0].Spec.DeploymentMode = dpf.ModeZeroTrust
			in.Nodes = []corev1.Node{{Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "2001:db8::1"}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			}}}
			in.Templates.Registry = &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9}, {Port: 80, NodePort: 30081}}}}
			c.is(&in.Templates.Configs[0].Spec.ProvisioningController, &in)
			p := bridge.Of(in)
			if c.want == "" {
				g.Expect(toldOfTemplates(p)).To(Equal([]string{"RegistryInvalid"}))
				return
			}
			g.Expect(p.Templates.Apply).To(HaveLen(1), "%v", p.Findings)
			live := []byte(p.Templates.Apply[0].(*accore.ConfigMapApplyConfiguration).Data[dpf.TemplateKey])
			g.Expect(string(fileOf(g, fileOf(g, live, "/var/target.ign"), "/etc/dpf/bfb-registry"))).To(Equal("BFBRegistryURL=" + c.want + "\n"))
		})
	}
}

// What is no certificate would have the download fail, whoever has signed the registry's.
func TestZeroTrustDPUsTrustWhatDPFPublishes(t *testing.T) {
	ca := authority(t)
	for _, text := range []string{ca, "", "nonsense"} {
		g, in := NewWithT(t), templating(t)
		config := &in.Templates.Configs[0].Spec
		config.DeploymentMode, config.ProvisioningController.Registry.Address = dpf.ModeZeroTrust, "https://192.0.2.7:5000"
		in.Templates.RegistryCA = &corev1.ConfigMap{Data: map[string]string{dpf.TrustBundleKey: text}}
		p := bridge.Of(in)
		g.Expect(p.Templates.Apply).To(HaveLen(1), "%v", p.Findings)
		target := fileOf(g, []byte(p.Templates.Apply[0].(*accore.ConfigMapApplyConfiguration).Data[dpf.TemplateKey]), "/var/target.ign")
		if text == ca {
			g.Expect(string(fileOf(g, target, "/etc/dpf/bfb-registry-ca.crt"))).To(Equal(ca))
		} else {
			g.Expect(string(target)).NotTo(ContainSubstring("bfb-registry-ca"))
		}
	}
}

// A Node that comes and goes must not have all templates written.
func TestOnlyZeroTrustDPUsDependOnANode(t *testing.T) {
	in := served(t)
	in.Templates.Configs[0].Spec.ProvisioningController.Registry.Address = "http://192.0.2.7:5000"
	NewWithT(t).Expect(bridge.Of(in).Templates).To(Equal(bridge.Templating{Served: 1}))
}

// fileOf is a compressed file in an ignition.
func fileOf(g Gomega, config []byte, path string) []byte {
	var read struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source string }
			}
		}
	}
	g.Expect(json.Unmarshal(config, &read)).To(Succeed())
	for _, f := range read.Storage.Files {
		if f.Path == path {
			data, err := dataurl.DecodeString(f.Contents.Source)
			g.Expect(err).NotTo(HaveOccurred())
			zipped, err := gzip.NewReader(bytes.NewReader(data.Data))
			g.Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(zipped)
			g.Expect(err).NotTo(HaveOccurred())
			return text
		}
	}
	g.Expect(path).To(BeEmpty(), "there is no such file")
	return nil
}
