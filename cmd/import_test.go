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
		"the files contain no DPFHCPProvisioner and no DPFHCPProvisionerConfig": {"-f", "-"},
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
		"document 2: error converting YAML to JSON: yaml: line 10: ":                                                    "a: b: c\n",
		"document 2: Infra: strict decoding error: yaml: unmarshal errors:\n  line 10: key \"spec\" already set in map": "spec: {}\n",
	} {
		_, _, err := imported(two+wrong, "-f", "-", "--hosts", "/dev/null")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}
