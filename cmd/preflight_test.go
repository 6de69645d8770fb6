package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	preflightExamples = "../examples/preflight/"
	bridgeFiles       = "../internal/preflight/testdata/"
)

func TestPreflightEndsWithWhatItFound(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		out   string
		err   string
	}{
		"nothing":                  {args: []string{"-f", preflightExamples + "good/isolated.yaml"}, out: "nothing found"},
		"networks not given":       {args: []string{"-f", preflightExamples + "ClientCIDROverlapsCluster/fails.yaml"}, out: "not judged"},
		"machines of other kinds":  {args: []string{"-f", preflightExamples + "good/bare-metal.yaml"}, out: "(platform Agent) are on the VLAN: no field says it"},
		"machines of Agent's":      {args: []string{"-f", preflightExamples + "good/bare-metal.yaml"}, out: "discovery image asks the assisted-service"},
		"how it is published":      {stdin: asking + asked, args: []string{"-f", "-"}, code: 1, out: "HostedCluster clusters/c1 has no spec.services, and the files contain no HostedControlPlane of it", err: "infra clusters/c1 would not work"},
		"a warning":                {args: []string{"-f", preflightExamples + "NoTimeSource/fails.yaml"}, out: "NoTimeSource"},
		"what is awaited":          {args: []string{"-f", preflightExamples + "WaitingForControlPlane/fails.yaml"}, out: "waiting for HostedCluster clusters/c1"},
		"what would not work":      {args: []string{"-f", preflightExamples + "DefaultNetworkAttached/fails.yaml"}, code: 1, out: "attachDefaultNetwork: false\n", err: "infra clusters/c1 would not work"},
		"an annotation's mistake":  {stdin: asking, args: []string{"-f", "-"}, code: 1, out: "HostedCluster clusters/c1", err: "infra clusters/c1 would not work"},
		"one beside the Infra":     {stdin: asking + asked, args: []string{"-f", "-"}, code: 1, out: "CIDRMissing", err: "infra clusters/c1 would not work"},
		"a name that none has":     {stdin: clusterOnly + strings.Replace(asked, "{name: c1}, networkConfig", "{name: c2}, networkConfig", 1), args: []string{"-f", "-"}, code: 1, out: "the files have no HostedCluster clusters/c2, only clusters/c1: correct the name, or give its file", err: "infra clusters/c1 would not work"},
		"a bridge":                 {args: []string{"-f", bridgeFiles + "bridges/in.yaml"}, code: 1, out: "TemplateTooLarge", err: "bridge dpf/dpu1 would not work"},
		"a bridge alone":           {args: []string{"-f", bridgeFiles + "bridge-alone/in.yaml"}, code: 1, out: "the files contain no DPFOperatorConfig", err: "bridge clusters/dpu1 would not work"},
		"no file":                  {code: 2, err: "give files with -f"},
		"a file that is not there": {args: []string{"-f", "missing.yaml"}, code: 2, err: "missing.yaml"},
		"a file that is no YAML":   {stdin: "a: [", args: []string{"-f", "-"}, code: 2, err: "document 1"},
		"no Infra":                 {stdin: "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n", args: []string{"-f", "-"}, code: 2, err: "the files contain no Infra, no HostedCluster and no DPUHCPBridge"},
		"nobody asks":              {args: []string{"-f", "../internal/preflight/testdata/nobody-asks/in.yaml"}, code: 1, out: "clusters/c1 would work with: kubectl -n clusters annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/infra=auto\n", err: "infra clusters/c2 would not work"},
		"a directory":              {args: []string{"-f", preflightExamples + "NADUnsupported"}, code: 2, err: "is given twice"},
		"a flag that is none":      {args: []string{"--strict"}, code: 2, err: "unknown flag"},
		"an argument":              {args: []string{"infra.yaml"}, code: 2, err: "infra.yaml: give each file with -f"},
		"another output":           {args: []string{"-f", "-", "-o", "xml"}, code: 2, err: "--output xml: write table or json"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := preflightOf(c.stdin, c.args...)
			g.Expect(out).To(ContainSubstring(c.out))
			if c.code == 0 {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.err)))
			g.Expect(ExitCode(err)).To(Equal(c.code))
		})
	}
}

// asking is a HostedCluster that requests an Infra, from which none can be derived.
const asking = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c1, namespace: clusters, annotations: {hostedcluster.densityops.com/infra: auto}}
spec: {platform: {type: KubeVirt, kubevirt: {}}}
`

// clusterOnly is that HostedCluster before it requests one.
var clusterOnly = strings.Replace(asking, ", annotations: {hostedcluster.densityops.com/infra: auto}", "", 1)

// asked is the Infra that it requests.
const asked = `
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec: {hostedClusterRef: {name: c1}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100}}
`

func TestPreflightSpeaksToPrograms(t *testing.T) {
	g := NewWithT(t)
	out, err := preflightOf("", "-f", preflightExamples+"DefaultNetworkAttached/fails.yaml", "-o", "json")
	g.Expect(ExitCode(err)).To(Equal(1))
	var said struct {
		Infras []struct {
			Works    bool
			Findings []struct{ Code, Severity, Object, Field, YAML string }
		}
	}
	g.Expect(json.Unmarshal([]byte(out), &said)).To(Succeed())
	g.Expect(said.Infras).To(HaveLen(1))
	g.Expect(said.Infras[0].Works).To(BeFalse())
	g.Expect(said.Infras[0].Findings).To(ContainElement(And(
		HaveField("Code", "DefaultNetworkAttached"), HaveField("Severity", "refused"), HaveField("Object", "NodePool clusters/c1-workers"),
		HaveField("Field", "spec.platform.kubevirt.attachDefaultNetwork"), HaveField("YAML", ContainSubstring("attachDefaultNetwork: false")))))
}

func preflightOf(stdin string, args ...string) (string, error) {
	cmd := Root()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"preflight"}, args...))
	err := cmd.Execute()
	return out.String(), err
}
