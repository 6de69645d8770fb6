#!/bin/bash
# Upgrades the firmware with the scripts of the BlueField layer, each part once for a version of DOCA: a stamp says that it is done.
. /usr/local/bin/dpf-common.sh

dpf_stamps=/var/lib/dpf/firmware
doca=$(rpm -q --qf '%{VERSION}-%{RELEASE}' doca-runtime) || doca=unknown
mkdir -p "$dpf_stamps"

is_done() { [ "$(cat "$dpf_stamps/$1" 2>/dev/null)" = "$doca" ]; }

stamp() { echo "$doca" >"$dpf_stamps/$1"; }

if is_done atf && is_done nic && is_done bmc; then
	say "Firmware is that of DOCA $doca"
	exit 0
fi

# What the scripts expect of bfb-install.
log() { say "$@"; }
ilog() { echo "$@"; }
rlog() { say "$@"; }
function_exists() { declare -F "$1" >/dev/null; }
update_progress() { :; }
bind_partitions() { :; }
unmount_partition() { :; }

. /opt/mellanox/bfb/atf-uefi
. /opt/mellanox/bfb/nic-fw
. /opt/mellanox/bfb/bmc

# The variables of nic-fw. With secure boot, the card is reached through fwctl only.
read -r cx_pcidev id < <(lspci -nD | sed -nE 's/^(\S+) .*15b3:(a2d[26c]).*/\1 \2/p')
cx_dev_id=$((16#$id))
flint_device=$cx_pcidev
if mokutil --sb-state 2>/dev/null | grep -q "SecureBoot enabled"; then
	flint_device=/dev/fwctl/$(grep -l "PCI_SLOT_NAME=$cx_pcidev" /sys/class/fwctl/*/device/uevent | cut -d/ -f5)
fi
PSID=$(mstflint -d "$flint_device" q | awk '/^PSID/ {print $NF}')

# The variables of bmc: an account for the time of the upgrade; no golden images, which it would flash at each boot.
RC=0
BMC_USER=firmware_updater
BMC_PASSWORD="Aa1-$(tr -dc 'A-Za-z0-9' </dev/urandom | head -c 12)"
USER_ID=8
BMC_REBOOT=yes
CEC_REBOOT=yes
UPDATE_DPU_GOLDEN_IMAGE=no
UPDATE_NIC_FW_GOLDEN_IMAGE=no

pre_bmc_components_update() {
	ipmitool user set name "$USER_ID" "$BMC_USER"
	ipmitool user set password "$USER_ID" "$BMC_PASSWORD"
	ipmitool user enable "$USER_ID"
	ipmitool channel setaccess 1 "$USER_ID" ipmi=on
	ipmitool user priv "$USER_ID" 4 1
}

post_bmc_components_update() {
	ipmitool user disable "$USER_ID"
	ipmitool user set name "$USER_ID" ""
	ip link delete vlan4040
} 2>/dev/null

# upgrade PART CONDITION NAME COMMAND runs a part that is not done, and tells DPF.
upgrade() {
	is_done "$1" && return
	/usr/local/bin/host-agent.sh condition "$2" False Upgrading "$3 is being upgraded"
	if "$4"; then
		stamp "$1"
		/usr/local/bin/host-agent.sh condition "$2" True Upgraded "$3 is that of DOCA $doca"
	else
		say "ERROR: $3 is not upgraded"
		/usr/local/bin/host-agent.sh condition "$2" False Failed "$3 is not upgraded: see the journal of dpu-fw-upgrade"
		return 1
	fi
}

# What fails is tried again at the next boot. A DPU can work with the BMC firmware that it has.
is_done atf || { update_atf_uefi && stamp atf; } || fail FirmwareUpgradeFailed "ATF/UEFI is not upgraded"
upgrade nic NICFirmwareUpgraded "NIC firmware" update_nic_firmware || fail FirmwareUpgradeFailed "The NIC's firmware is not upgraded"
trap post_bmc_components_update EXIT
upgrade bmc BMCFirmwareUpgraded "BMC firmware" bmc_components_update
exit 0
