package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// imported runs the command and returns both outputs.
func imported(stdin string, args ...string) (out, findings string, err error) {
	root := Root()
	var stdout, stderr bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(append([]string{"import"}, args...))
	err = root.Execute()
	return stdout.String(), stderr.String(), err
}

const manifests = "../internal/moving/testdata/"

func TestImportPrintsBridgesAndSaysWhatTheyLack(t *testing.T) {
	g := NewWithT(t)
	out, findings, err := imported("", "-f", manifests+"sample/in.yaml", "-f", manifests+"ha/in.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded(strings.TrimPrefix(out, "---\n"))).To(Succeed())
	g.Expect(strings.Count(out, "kind: DPUHCPBridge\n")).To(Equal(2))
	g.Expect(findings).To(HavePrefix("DPFHCPProvisioner dpf-hcp-provisioner-system/dpfhcpprovisioner-sample: RefNotPermitted: spec.dpuClusterRef "))
}

func TestImportFailsIfABridgeWouldBeRefused(t *testing.T) {
	g := NewWithT(t)
	out, findings, err := imported("", "-f", manifests+"unfit/in.yaml")
	g.Expect(err).To(MatchError(ContainSubstring("DPFHCPProvisioner default/dpu2 needs a change before its bridge can be applied")))
	g.Expect(ExitCode(err)).To(Equal(1))
	g.Expect(findings).To(ContainSubstring("ImageInvalid: spec.machineOSURL"))
	g.Expect(strings.Count(out, "kind: DPUHCPBridge\n")).To(Equal(2))
}

func TestImportIsUnusableWithoutManifests(t *testing.T) {
	for says, args := range map[string][]string{
		"a.yaml: give each file with the flag of its kind": {"a.yaml"},
		"nothing to read": {},
		"the files contain no DPFHCPProvisioner and no DPFHCPProvisionerConfig (provisioning.dpu.hcp.io/v1alpha1): give one of them, or the configuration of a server with": {"-f", "-"},
		"no such file": {"-f", "missing.yaml"},
		`DPFHCPProvisioner of apiVersion "provisioning.dpu.hcp.io/v1" is not read; write apiVersion: provisioning.dpu.hcp.io/v1alpha1`: {"-f", "-"},
	} {
		stdin := ""
		if strings.Contains(says, "is not read") {
			stdin = "apiVersion: provisioning.dpu.hcp.io/v1\nkind: DPFHCPProvisioner\nmetadata: {name: a}\n"
		}
		_, _, err := imported(stdin, args...)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
		NewWithT(t).Expect(ExitCode(err)).To(Equal(unusable))
	}
}

// Nobody may ever write to a pipe that has a name; one that the shell gives is read.
func TestANamedPipeIsNotWaitedFor(t *testing.T) {
	g, pipe := NewWithT(t), filepath.Join(t.TempDir(), "pipe.yaml")
	g.Expect(unix.Mkfifo(pipe, 0o600)).To(Succeed())
	for _, args := range [][]string{{"-f", pipe}, {"--haproxy", pipe}} {
		_, _, err := imported("", args...)
		g.Expect(err).To(MatchError(pipe + " is a named pipe and no file: give a file, or what a program writes as standard input, with -"))
		g.Expect(ExitCode(err)).To(Equal(unusable))
	}
	read, write, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	defer read.Close()
	_, err = write.WriteString("listen a\n  mode http\n")
	g.Expect(errors.Join(err, write.Close())).To(Succeed())
	_, left, _ := imported("", "--haproxy", fmt.Sprintf("/dev/fd/%d", read.Fd()))
	g.Expect(left).To(ContainSubstring(":1: listen a: it takes connections apart"))
}

// A manifest has several documents, and an editor the lines of the file.
func TestALineOfAManifestIsTheFiles(t *testing.T) {
	const two = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n" + infraOfVLAN
	for says, wrong := range map[string]string{
		"document 2: it is no YAML: line 10: ": "a: b: c\n",
		"document 2: Infra: strict decoding error: yaml: unmarshal errors:\n  line 10: key \"spec\" already set in map": "spec: {}\n",
	} {
		_, _, err := imported(two+wrong, "-f", "-", "--hosts", "/dev/null")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

// Leases are no manifests, and of no use without the configuration of their server.
func TestImportSaysWhereLeasesGo(t *testing.T) {
	for kind, text := range map[string]string{
		"dnsmasq":   "1795780800 52:54:00:00:00:01 192.168.77.10 worker-1 *\n",
		"isc-dhcpd": "# The format of this file is documented in the dhcpd.leases(5) manual page.\nlease 192.168.77.10 {\n  ends never;\n  binding state active;\n  hardware ethernet 52:54:00:00:00:02;\n}\n",
		"kea":       "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id\n192.168.77.10,52:54:00:00:00:09,,3600,1795777200,1,0,0,,0,,0\n",
		"oooi":      "{\"ip\":\"192.168.77.10\",\"mac\":\"52:54:00:00:00:01\"}\n{\"ip\":\"192.168.77.11\",\"mac\":\"52:54:00:00:00:02\"}\n",
	} {
		g := NewWithT(t)
		writeAll(t, map[string]string{"leases": text, "infra.yaml": infraOfVLAN})
		_, _, err := imported("", "-f", "infra.yaml", "-f", "leases")
		g.Expect(err).To(MatchError("leases has leases and no manifests: give it to oooi leases import, with --from " + kind +
			", and the configuration of its server to oooi import, with the flag of its kind"))
		g.Expect(ExitCode(err)).To(Equal(unusable))
	}
}
