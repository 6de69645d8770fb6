//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// dpuOf creates a DPU that is to be installed from a BFB with a flavor.
func dpuOf(t *testing.T, ctx context.Context, name, bfb, flavor string) {
	t.Helper()
	apply(t, ctx, fmt.Sprintf(`apiVersion: provisioning.dpu.nvidia.com/v1alpha1
kind: DPU
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  bfb: %[3]s
  dpuFlavor: %[4]s
  nodeEffect: {drain: true}
  dpuDeviceName: device-1
  dpuNodeName: host-1
  serialNumber: MT0000000001
  cluster: {name: dpu1, namespace: %[2]s}
`, name, dpfNamespace, bfb, flavor))
	dpuStatus(t, ctx, name, "False")
}

// installedFromTemplate creates a DPU with a flavor, renders its template as DPF does, and runs the live part of that. It returns the machine
// that boots from what coreos-installer got.
func installedFromTemplate(t *testing.T, ctx context.Context, name, flavor, mode, kubeconfig string) scene.Machine {
	t.Helper()
	dpuOf(t, ctx, name, "bf-bundle", flavor)
	var text string
	must(t, scene.Until(ctx, "a template of flavor "+flavor, func(ctx context.Context) (err error) {
		text, err = theTemplate(ctx, flavor)
		return err
	}))
	target := installed(t, ctx, rendered(t, text, name, kubeconfig), mode)
	return scene.Machine{Name: name, MAC: "52:54:00:00:80:0" + name[len(name)-1:], Cluster: "dpu1", Bridge: "br80", UserData: target}
}

// dpusBoot powers DPUs on, all at once, and waits until each has what it joins with.
func dpusBoot(t *testing.T, ctx context.Context, machines ...scene.Machine) {
	t.Helper()
	var consoles []*scene.Console
	for _, m := range machines {
		console, err := lab.PowerOn(ctx, m)
		must(t, err)
		afterwards(t, func(ctx context.Context) error { return lab.PowerOff(ctx, m) })
		consoles = append(consoles, console)
	}
	for i, console := range consoles {
		for _, stage := range []string{"lease", "ignition", "api"} {
			at, err := console.Await(ctx, stage)
			must(t, err)
			t.Logf("%s: %5.1f s %s %s", machines[i].Name, at.Uptime.Seconds(), stage, at.Detail)
		}
		osInstalled(t, ctx, machines[i].Name)
	}
}

// has looks at what a command says in a machine.
func has(t *testing.T, ctx context.Context, m scene.Machine, want string, command ...string) {
	t.Helper()
	got, err := lab.On(ctx, m, command...)
	if err != nil || strings.TrimSpace(got) != want {
		t.Errorf("%s: %s says %q %v, want %q", m.Name, strings.Join(command, " "), got, err, want)
	}
}

// hasWhatADPUNeeds looks in the machine for all of its target, and for what the spec of a DPU lists, whatever its mode.
func hasWhatADPUNeeds(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	hasItsTarget(t, ctx, m)
	has(t, ctx, m, m.Name, "hostname")
	has(t, ctx, m, "600", "stat -c %a /etc/NetworkManager/system-connections/br-comm-ch.nmconnection")
	has(t, ctx, m, "e2e.local/bluefield:4.20.4", "grep -o e2e.local/bluefield:4.20.4 /etc/ignition-machine-config-encapsulated.json")
	has(t, ctx, m, `ENABLE_ESWITCH_MULTIPORT="yes"`, "grep MULTIPORT /etc/mellanox/mlnx-bf.conf")
	hasUnits(t, ctx, m, "ok", "dpu-agent", "dpf-ovs", "dpu-sf-gate", "setup-vfs-devlink", "install-dpu-agent")
}

// hasUnits: each is there and enabled, or neither.
func hasUnits(t *testing.T, ctx context.Context, m scene.Machine, want string, units ...string) {
	t.Helper()
	for _, unit := range units {
		has(t, ctx, m, want, fmt.Sprintf("test -s /etc/systemd/system/%[1]s.service && grep -qx 'enable %[1]s.service' /etc/systemd/system-preset/20-ignition.preset && echo ok || echo none", unit))
	}
}

// What a DPU has, or has not, by its mode.
const (
	ofMode       = "grep DPUMode /etc/dpf/environment"
	ofHost       = "test -e /etc/yum.repos.d/agentrepo.repo && echo ok || echo none"
	ofRegistry   = "cat /etc/dpf/bfb-registry"
	ofOOB        = "sed -n '/ipv4/,/method/s/^method=//p' /etc/NetworkManager/system-connections/oob_net0.nmconnection"
	ofCommCh     = "sed -n '/ipv4/,/method/s/^method=//p' /etc/NetworkManager/system-connections/br-comm-ch.nmconnection"
	ofKubeconfig = "cat /var/lib/dpf/dpuagent/bootstrap-kubeconfig 2> /dev/null || echo none"
)

// hasMTU: the way to the API has it, and what carries that has a profile only for another MTU than the kernel's own.
func hasMTU(t *testing.T, ctx context.Context, m scene.Machine, mtu int) {
	t.Helper()
	want, carriers := fmt.Sprint("mtu=", mtu), "none"
	if mtu != 1500 {
		carriers = want
	}
	const of = "grep -hs ^mtu= /etc/NetworkManager/system-connections/%s.nmconnection || echo none"
	has(t, ctx, m, want, fmt.Sprintf(of, "pf0vf0"))
	for _, profile := range []string{"p0", "p1", "pf0hpf", "pf1hpf"} {
		has(t, ctx, m, carriers, fmt.Sprintf(of, profile))
	}
}

// says compares what commands say in a machine.
func says(t *testing.T, ctx context.Context, m scene.Machine, wants map[string]string) {
	t.Helper()
	for command, want := range wants {
		has(t, ctx, m, want, command)
	}
}

// flavorsShareAHostedCluster: two DPUs of one DPUCluster are installed at one time, each from the template of its flavor, and both join. Neither
// trusts its host, as DPFOperatorConfig says for all: one flavor is of DPF's guide to zero-trust and names the mode too, as all did before 26.4, and
// the other names none, and is installed after the MTU has become 1500.
func flavorsShareAHostedCluster(t *testing.T, ctx context.Context) {
	t.Helper()
	documentedDPF(t, ctx, "zero-trust", "03.1-dpudeployment-installation-pf/hbn-dpuflavor.yaml")
	configDPF(t, ctx, `{"provisioningController":{"registry":{"loadBalancerAddress":"https://e2e.local:8443"}}}`)
	mtus := map[string]int{"dpu-2": 9000, "dpu-3": 1500}
	machines := []scene.Machine{installedFromTemplate(t, ctx, "dpu-2", "dpf-provisioning-hbn", "zero-trust", "for dpu-2\n")}
	anotherMTUFollows(t, ctx, mtus["dpu-3"])
	machines = append(machines, installedFromTemplate(t, ctx, "dpu-3", "hbn", "zero-trust", "for dpu-3\n"))
	dpusBoot(t, ctx, machines...)
	for _, m := range machines {
		nodeIsReady(t, ctx, m)
		hasWhatADPUNeeds(t, ctx, m)
		hasMTU(t, ctx, m, mtus[m.Name])
		says(t, ctx, m, map[string]string{ofMode: "DPUMode=zero-trust", ofHost: "none", ofKubeconfig: "for " + m.Name, ofOOB: "auto", ofCommCh: "disabled", ofRegistry: "BFBRegistryURL=https://e2e.local:8443"})
		hasUnits(t, ctx, m, "none", "pf-monitor", "report-machineosurl")
	}
	for _, m := range machines {
		removedByDPF(t, ctx, m)
	}
	must(t, scene.Until(ctx, "no template of a flavor that no DPU has", func(ctx context.Context) error {
		if _, err := theTemplate(ctx, "hbn"); err == nil {
			return fmt.Errorf("there is one")
		}
		return nil
	}))
}
