package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan/input"
)

const cases = "../internal/plan/testdata/"

// rendered runs the command and returns both outputs.
func rendered(stdin string, args ...string) (out, findings string, err error) {
	cmd := newRenderCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"--image", "oooi:1", "--envoy-image", "envoy:1"}, args...))
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

func TestRenderPrintsChildrenAndWhatTheyBecome(t *testing.T) {
	g := NewWithT(t)
	out, findings, err := rendered("", "-f", cases+"loadbalancer-without-hostname/in.yaml", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(findings).To(HavePrefix("infra clusters/c1: NetworkReady NoTimeSource: "))
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
	}
	g.Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Kind+" "+item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	g.Expect(list.Kind).To(Equal("List"))
	g.Expect(all).To(ContainElements(
		"NetworkAttachmentDefinition clusters/c1-proxy", "DHCPServer clusters/c1-dhcp", "DNSServer clusters/c1-dns", "ProxyServer clusters/c1-proxy",
		"NetworkPolicy clusters-c1/oooi.clusters.c1-proxy.ignition-server-proxy",
		"StatefulSet clusters/c1-dhcp-deployment", "StatefulSet clusters/c1-dns-deployment", "Deployment clusters/c1-proxy-deployment", "Service clusters/c1-proxy-svc",
	))
	yaml, _, err := rendered("", "-f", cases+"loadbalancer-without-hostname/in.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(yaml, "\n---\n") + 1).To(Equal(len(all)))
}

func TestRenderSaysWhatIsWrongAndFails(t *testing.T) {
	infra := `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100}
`
	for name, c := range map[string]struct {
		stdin         string
		args          []string
		err, findings string
	}{
		"a control plane that is not there": {stdin: infra, args: []string{"-f", "-"},
			err: "infra clusters/c1 is rejected: nothing of it would be applied", findings: "infra clusters/c1: EndpointsResolved WaitingForControlPlane: waiting for HostedCluster clusters/c1\n"},
		"a field that does not exist": {stdin: strings.Replace(infra, "networkConfig", "networkConfg", 1), args: []string{"-f", "-"}, err: `unknown field "spec.networkConfg"`},
		"no Infra":                    {stdin: "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n", args: []string{"-f", "-"}, err: "the files contain no Infra, and no HostedCluster that requests one"},
		"a file that is not there":    {args: []string{"-f", "missing.yaml"}, err: "stat missing.yaml: no such file or directory"},
		"one file twice": {args: []string{"-f", cases + "seed-form/in.yaml", "-f", cases + "seed-form/in.yaml"},
			err: cases + "seed-form/in.yaml: Infra clusters/example-infra is given twice, first in " + cases + "seed-form/in.yaml; give it once"},
		"an address for a network": {stdin: infra, args: []string{"-f", "-", "--extra-endpoint-cidrs", "10.0.0.1/8"},
			err: `invalid argument "10.0.0.1/8" for "--extra-endpoint-cidrs" flag: 10.0.0.1/8 is an address in a network; write the network, 10.0.0.0/8, or the address alone, 10.0.0.1/32`},
		"no network":     {stdin: infra, args: []string{"-f", "-", "--pod-cidrs", "10.128.0.0/14,here"}, err: `"here" is not a network; write one like 10.0.0.0/8`},
		"no domain":      {stdin: infra, args: []string{"-f", "-", "--cluster-domain", "*bad"}, err: `invalid argument "*bad" for "--cluster-domain" flag: not a domain in lower case; write one like cluster.local`},
		"another output": {stdin: infra, args: []string{"-f", "-", "-o", "xml"}, err: "--output xml: write yaml or json"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, findings, err := rendered(c.stdin, c.args...)
			g.Expect(err).To(MatchError(ContainSubstring(c.err)))
			g.Expect(findings).To(ContainSubstring(c.findings))
			g.Expect(out).To(BeEmpty())
		})
	}
}

// A program that goes through the items need not know that nothing is applied.
func TestNoObjectsAreAListToo(t *testing.T) {
	g := NewWithT(t)
	out, _, err := rendered("", "-o", "json", "-f", preflightExamples+"SharedIngressUnsupported/fails.yaml")
	g.Expect(err).To(MatchError(ContainSubstring("is rejected")))
	g.Expect(out).To(MatchJSON(`{"apiVersion": "v1", "kind": "List", "items": []}`))
}

// A user of a released binary need not know its images.
func TestTheReleasedImagesAreThoseOfTheDeployment(t *testing.T) {
	deployment, err := os.ReadFile("../config/manager/manager.yaml")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	for name, image := range map[string]string{"RELATED_IMAGE_OOOI": releasedImage, "RELATED_IMAGE_ENVOY": releasedEnvoyImage} {
		g.Expect(string(deployment)).To(ContainSubstring("- name: " + name + "\n          value: " + image + "\n"))
		t.Setenv(name, "")
	}
	out, _, err := rendered("", "-f", cases+"loadbalancer-without-hostname/in.yaml", "--image", "", "--envoy-image", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(ContainSubstring("image: "+releasedImage+"\n"), ContainSubstring("image: "+releasedEnvoyImage+"\n")))
	g.Expect(runManager(t.Context(), managerFlags{vlanServices: true}, input.Settings{})).To(MatchError(ContainSubstring("the daemons' images are not known")), "the manager guesses none")
}

func TestRenderTakesTheSample(t *testing.T) {
	_, findings, err := rendered("", "-f", "../examples/seed-001.yaml")
	g := NewWithT(t)
	g.Expect(err).To(MatchError(ContainSubstring("infra clusters/example-infra is rejected")))
	g.Expect(findings).To(ContainSubstring("RefNotPermitted"))
}

func TestRenderStartsFromAnAnnotatedHostedCluster(t *testing.T) {
	g := NewWithT(t)
	example, err := os.ReadFile("../examples/hostedcluster-auto.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	out, findings, err := rendered(string(example), "-f", "-")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(findings).To(HavePrefix("infra clusters/c1: NetworkReady NoTimeSource: "))
	g.Expect(out).To(HavePrefix("---\napiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\n"))
	g.Expect(out).To(And(ContainSubstring("networkAttachmentDefinition: vlan100\n"), ContainSubstring("name: c1-proxy-deployment\n")))

	// If nothing can be derived, the findings say so, and nothing of that cluster is printed.
	out, findings, err = rendered(strings.Replace(string(example), "attachDefaultNetwork: false", "attachDefaultNetwork: true", 1), "-f", "-")
	g.Expect(err).To(MatchError("infra clusters/c1 is rejected: nothing of it would be applied"))
	g.Expect(findings).To(And(HavePrefix("infra clusters/c1: Provisioned NetworkAttachmentMissing: "),
		HaveSuffix("kubectl -n clusters annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/network-attachment=NAMESPACE/NAME\n")))
	g.Expect(out).To(BeEmpty())
}

func TestTheForwardingIsPrintedAsAsked(t *testing.T) {
	const servers = `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DNSServer
metadata: {name: c1-dns, namespace: clusters}
spec: {hostedClusterDomain: c1.example.com}
status: {serviceClusterIP: 172.30.0.53}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DNSServer
metadata: {name: c2-dns, namespace: clusters}
spec: {hostedClusterDomain: c2.example.com}
---
apiVersion: operator.openshift.io/v1
kind: DNS
metadata: {name: default}
`
	g := NewWithT(t)
	out, told, err := rendered(servers, "--openshift-dns", "-f", "-", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(HavePrefix("DNSServer clusters/c2-dns has no status.serviceClusterIP yet: "))
	g.Expect(json.Valid([]byte(out))).To(BeTrue(), out)
	g.Expect(out).To(ContainSubstring("172.30.0.53"))
	_, _, err = rendered(servers, "--openshift-dns", "-f", "-", "-o", "xml")
	g.Expect(err).To(MatchError("--output xml: write yaml or json"))
}
