package bfcfg

import "testing"

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
