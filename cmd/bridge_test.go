package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	publicKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f core\n"
	pullSecret = `{"auths": {"quay.io": {"auth": "dTpw"}}}`
)

// ordering are the arguments for a good bridge, with files in a directory, followed by others.
func ordering(t *testing.T, others ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{"key.pub": publicKey, "pull.json": pullSecret, "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", "text": "hunter2"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"create", "dpu1", "-n", "clusters", "--dpu-cluster", "dpf/dpus", "--base-domain", "example.com", "--ssh-key", "DIR/key.pub", "--pull-secret", "DIR/pull.json", "--release-image", "quay.io/ocp/release:4.20.4-multi"}
	args = append(args, others...)
	for i := range args {
		args[i] = strings.Replace(args[i], "DIR", dir, 1)
	}
	return args
}

func bridgeOf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	root := Root()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"bridge"}, args...))
	err := root.Execute()
	return out.String(), err
}

func TestAWordThatIsNoSubcommandIsRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := bridgeOf(t, "foo")
	g.Expect(err).To(MatchError(ContainSubstring(`unknown command "foo" for "oooi bridge"`)))
	g.Expect(ExitCode(err)).To(Equal(unusable))
	out, err := bridgeOf(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("Available Commands:"))
}

func TestABridgeIsPrintedFromFiles(t *testing.T) {
	g := NewWithT(t)
	out, err := bridgeOf(t, ordering(t, "-o", "yaml", "--metallb-virtual-ip", "192.0.2.10", "--expose-through-load-balancer")...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(`---
apiVersion: v1
data:
  id_rsa.pub: c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQkFnTUVCUVlIQ0FrS0N3d05EZzhRRVJJVEZCVVdGeGdaR2hzY0hSNGYgY29yZQo=
kind: Secret
metadata:
  name: dpu1-ssh-key
  namespace: clusters
type: Opaque
---
apiVersion: v1
data:
  .dockerconfigjson: eyJhdXRocyI6IHsicXVheS5pbyI6IHsiYXV0aCI6ICJkVHB3In19fQ==
kind: Secret
metadata:
  name: dpu1-pull-secret
  namespace: clusters
type: kubernetes.io/dockerconfigjson
---
apiVersion: provisioning.dpu.hcp.io/v1alpha1
kind: DPUHCPBridge
metadata:
  name: dpu1
  namespace: clusters
spec:
  baseDomain: example.com
  dpuClusterRef:
    name: dpus
    namespace: dpf
  exposeThroughLoadBalancer: true
  metalLBVirtualIP: 192.0.2.10
  ocpReleaseImage: quay.io/ocp/release:4.20.4-multi
  pullSecret: dpu1-pull-secret
  sshKey: dpu1-ssh-key
`))
}

func TestABridgeThatCannotBeMadeIsUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		others []string
		says   string
	}{
		"a private key":            {[]string{"--ssh-key", "DIR/key"}, "--ssh-key has a private key in id_rsa.pub; put the public one there"},
		"no pull secret":           {[]string{"--pull-secret", "DIR/text"}, "--pull-secret has no JSON of a pull secret"},
		"a file that is not there": {[]string{"--pull-secret", "DIR/missing"}, "missing: no such file"},
		"another output":           {[]string{"-o", "json"}, "--output json: use yaml, or omit it"},
		"a flag that is none":      {[]string{"--vip", "192.0.2.10"}, "unknown flag"},
		"two names":                {[]string{"dpu2"}, "give one name: oooi bridge create NAME"},
		"no cluster":               {nil, "finding the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := bridgeOf(t, ordering(t, c.others...)...)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(ExitCode(err)).To(Equal(2))
			g.Expect(out + err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestStatusIsUnusableWithoutABridge(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name: oooi bridge status NAME":               {"status"},
		"--output yaml: write table or json":                   {"status", "dpu1", "-o", "yaml"},
		"context was not found for specified context: missing": {"status", "dpu1", "--context", "missing"},
		`required flag(s) "base-domain", "dpu-cluster`:         {"create", "dpu1"},
	} {
		_, err := bridgeOf(t, args...)
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring(says)))
		g.Expect(ExitCode(err)).To(Equal(2))
	}
}
