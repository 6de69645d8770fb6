package bfcfg

import (
	"strings"
	"testing"
)

// The machine-config-daemon pulls the BlueField layer at the first boot: a private CA has to be there by then.
func TestTheTargetTrustsTheRegistryOfItsImage(t *testing.T) {
	from := source(t)
	const at = "/etc/containers/certs.d/registry.example.com:5000/ca.crt"
	from.MachineOS, from.PullCA = "registry.example.com:5000/rhcos:1", "a CA\n"
	if is := install(t, from); file(t, is.target, at) != "a CA\n" || fileAt(&is.live, at) >= 0 {
		t.Error("the CA is not in the target, or it is in the live system, which pulls nothing")
	}
	from.PullCA = ""
	if is := install(t, from); fileAt(&is.target, at) >= 0 {
		t.Error("without a CA, an empty file takes the place of those of the operating system")
	}
}

// DPF's registry may have a certificate of DPF's own CA: dnf ignores a repository that it does not trust (dnf 4.14), and the DPU would ask for its
// agent without end.
func TestAZeroTrustDPUTrustsTheRegistryOfItsAgent(t *testing.T) {
	from := source(t)
	from.ZeroTrust, from.Registry, from.RegistryCA = true, "https://192.0.2.10:30080", "DPF's\n"
	for _, ca := range []string{"DPF's\n", ""} {
		from.RegistryCA = ca
		b := newBox(t, install(t, from).target, "zero-trust")
		b.env = append(b.env, "BFBRegistryURL="+from.Registry)
		b.write("/etc/pki/tls/certs/ca-bundle.crt", "the system's\n")
		b.command("dnf", `cp ca.crt $(dirname "$0")/../trusted`)
		b.command("rpm2cpio", "")
		b.command("cpio", "mkdir -p opt/dpf; touch opt/dpf/dpuagent")
		b.command("sleep", `touch $(dirname "$0")/../trusted ca.crt`) // dnf had none, and succeeds then
		calls := b.mustRun("install-dpu-agent.sh")
		if trusts, own := strings.Contains(calls, "--setopt=agentrepo.sslcacert="), string(read(t, b.root+"/trusted")); trusts != (ca != "") || trusts && own != "the system's\nDPF's\n" {
			t.Errorf("with CA %q it trusts %q: %s", ca, own, calls)
		}
	}
	from.ZeroTrust, from.RegistryCA = false, "DPF's\n"
	if is := install(t, from); fileAt(&is.target, registryCAPath) >= 0 {
		t.Error("a DPU whose host is trusted has it, and downloads from its host")
	}
}
