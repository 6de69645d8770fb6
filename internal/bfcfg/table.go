package bfcfg

// A row is a file of content, by its path there and on the DPU. A zero-trust DPU's has ".zero-trust" behind its name in content.
type row struct {
	path string
	mode int // a unit has none
	kind kind
}

// kind says who gets a file, and how.
type kind int

const (
	unit        kind = 1 << iota // of systemd, enabled
	trusted                      // only where the host is trusted
	zeroTrust                    // only where it is not
	jumbo                        // only for an MTU that is not 1500
	hugepages                    // only where Open vSwitch takes some
	free                         // a flavor may replace it
	plain                        // as text, in which DPF fills in the DPU
	base64ByDPF                  // what DPF fills in is base64
)

func (r row) is(k kind) bool { return r.kind&k != 0 }

// commonRows are for the live system and the target.
var commonRows = []row{
	{"/etc/systemd/network/10-oob_net.link", 0o644, 0},
	{"/etc/systemd/network/10-tmfifo_net.link", 0o644, 0},
	{"/etc/NetworkManager/system-connections/tmfifo_net0.nmconnection", 0o600, 0},
	{"/etc/NetworkManager/system-connections/oob_net0.nmconnection", 0o600, trusted},
	{"/etc/NetworkManager/system-connections/oob_net0.nmconnection", 0o600, zeroTrust},
	{"/usr/local/bin/dpf-common.sh", 0o644, 0},
	{"/usr/local/bin/host-agent.sh", 0o755, 0},
	{"/usr/local/bin/bfupsignal.sh", 0o755, 0},
	{"/usr/local/bin/dpf-switchdev.sh", 0o755, 0},
	{"/etc/systemd/system/devlink-activate.service", 0, unit},
}

// liveRows are for the live system.
var liveRows = []row{
	{"/etc/temp_bfcfg_strings.env", 0o644, plain}, // DPF takes no bf.cfg without these words
	{"/etc/hostname", 0o644, plain},
	{"/etc/dpf/environment", 0o644, plain | trusted},
	{"/etc/dpf/environment", 0o644, plain | zeroTrust},
	{"/var/lib/dpf/dpuagent/bootstrap-kubeconfig", 0o600, base64ByDPF | zeroTrust},
	{"/usr/local/bin/add-identity.sh", 0o755, 0},
	{"/usr/local/bin/install-rhcos-dpf.sh", 0o755, 0},
	{"/etc/systemd/system/install-rhcos-dpf.service", 0, unit},
}

// targetRows are for the installed system. Its first boot is RHCOS, its second the BlueField layer, which has /etc/mlnx-release.
var targetRows = []row{
	// The way to the API. In zero-trust that is oob_net0: a br-comm-ch that asks and never gets an address would have NetworkManager-wait-online wait
	// for as long as it may.
	{"/etc/NetworkManager/system-connections/br-comm-ch.nmconnection", 0o600, trusted},
	{"/etc/NetworkManager/system-connections/br-comm-ch.nmconnection", 0o600, zeroTrust},
	{"/etc/NetworkManager/system-connections/pf0vf0.nmconnection", 0o600, 0},
	{"/etc/NetworkManager/system-connections/p0.nmconnection", 0o600, jumbo},
	{"/etc/NetworkManager/system-connections/p1.nmconnection", 0o600, jumbo},
	{"/etc/NetworkManager/system-connections/pf0hpf.nmconnection", 0o600, jumbo},
	{"/etc/NetworkManager/system-connections/pf1hpf.nmconnection", 0o600, jumbo},
	{"/etc/systemd/system/NetworkManager-wait-online.service.d/override.conf", 0o644, 0},
	{"/etc/systemd/system/chrony-wait.service.d/override.conf", 0o644, 0},
	{"/etc/sysctl.d/98-dpunet.conf", 0o644, free},
	{"/etc/modules-load.d/br_netfilter.conf", 0o644, free},

	// The card, Open vSwitch and containers.
	{"/etc/mellanox/mlnx-bf.conf", 0o644, free},
	{"/etc/mellanox/mlnx-ovs.conf", 0o644, free},
	{"/etc/sysconfig/openvswitch", 0o600, free},
	{"/etc/crio/crio.conf.d/99-ulimits.conf", 0o644, free},
	{"/etc/tmpfiles.d/99-hugetlbfs-dpf.conf", 0o644, free},
	{"/etc/openshift/kubelet.conf.d/kubelet-dpf-override.conf", 0o644, 0},
	{"/etc/kubernetes/manifests/ovs-hugepages.yaml", 0o644, hugepages},

	// The first boot.
	{"/etc/systemd/system/bfupsignal.service", 0, unit},
	{"/etc/systemd/system/tmfifo-agent-link.service", 0, unit},
	{"/usr/local/bin/tmfifo-agent-link.sh", 0o755, 0},
	{"/etc/systemd/system/setup-vfs-devlink.service", 0, unit},
	{"/usr/local/bin/setup-vfs-devlink.sh", 0o755, 0},
	{"/etc/systemd/system/machine-config-daemon-pull.service.d/10-require-setup-vfs.conf", 0o644, 0},
	{"/etc/systemd/system/machine-config-daemon-firstboot.service.d/10-mcd-firstboot-dpuagent.conf", 0o644, 0},
	{"/etc/systemd/system/install-dpu-agent.service", 0, unit},
	{"/usr/local/bin/install-dpu-agent.sh", 0o755, 0},
	{"/etc/yum.repos.d/agentrepo.repo", 0o644, trusted},
	{"/etc/dpf/bfb-registry", 0o644, zeroTrust},

	// The second, and those after it.
	{"/etc/systemd/system/dpu-fw-upgrade.service", 0, unit},
	{"/usr/local/bin/dpu-fw-upgrade.sh", 0o755, 0},
	{"/etc/systemd/system/dpu-agent.service", 0, unit},
	{"/etc/systemd/system/dpu-agent.service.d/trust.conf", 0o644, zeroTrust},
	{"/etc/systemd/system/dpu-sf-gate.service", 0, unit},
	{"/usr/local/bin/wait-for-sfs.sh", 0o755, 0},
	{"/etc/systemd/system/dpf-ovs.service", 0, unit},
	{"/etc/systemd/system/pf-monitor.service", 0, unit | trusted},
	{"/usr/local/bin/pf-monitor.sh", 0o755, trusted},
	{"/etc/systemd/system/report-machineosurl.service", 0, unit | trusted},
	{"/usr/local/bin/report-machineosurl.sh", 0o755, trusted},
}
