#!/bin/bash
# Installs the target on the DPU's disk, and boots it once DPF says so. What fails is told to DPF, and leaves the live system as it is.
. /usr/local/bin/dpf-common.sh

# The host's agent may not be up yet, or again: DPF shows nothing of an error that it has not heard.
fail() {
	wait_for 300 5 "the host's agent: error" complain "$@"
	exit 1
}

disk=/dev/nvme0n1
target=/var/target.ign
flavor=/etc/dpf/dpuflavor.json
power_cycle=

# With secure boot, the firmware is reached through fwctl only.
devices() {
	if mokutil --sb-state 2>/dev/null | grep -q "SecureBoot enabled"; then
		modprobe -a fwctl mlx5_fwctl
		udevadm settle
		ls /dev/fwctl/fwctl* 2>/dev/null
	else
		lspci -Dd 15b3: | awk '/ConnectX/ {print $1}'
	fi
}

found() { [ -n "$(devices)" ]; }

check() {
	[ -b "$disk" ] || fail Hardware "$disk is missing"
	wait_for 10 1 "network functions" found || fail Hardware "no ConnectX is found"
	[ -n "$DPUName" ] && [ -n "$DPUNamespace" ] && [ -n "$DPUUID" ] || fail Ignition "DPF has not filled in the DPU's identity"
	say "DPU $DPUNamespace/$DPUName, $DPUUID, $DPUMode"
}

# current DEVICE NAME is a value of the firmware's configuration; those for the next boot, in the last column, are not in effect yet.
current() { mstconfig -d "$1" -e q "$2" | awk -v name="$2" '$1 == name || $2 == name {print $(NF - 1)}'; }

# configure_firmware lets the host make as many VFs as the flavor says, or one.
configure_firmware() {
	local device vfs
	vfs=$(jq -r '[.spec.nvconfig[]?.parameters[]? | select(startswith("NUM_OF_VFS="))][0] // "NUM_OF_VFS=1" | ltrimstr("NUM_OF_VFS=")' "$flavor")
	for device in $(devices); do
		if [ "$(current "$device" SRIOV_EN)" != "True(1)" ] || [ "$(current "$device" PF_NUM_OF_VF_VALID)" = "True(1)" ]; then
			mstconfig -d "$device" -y reset || fail NVConfig "cannot reset the configuration of $device"
		elif [ "$(current "$device" NUM_OF_VFS)" = "$vfs" ]; then
			continue
		fi
		mstconfig -d "$device" -y set SRIOV_EN=1 PF_NUM_OF_VF_VALID=0 NUM_OF_VFS="$vfs" || fail NVConfig "cannot set NUM_OF_VFS=$vfs on $device"
		say "$device: NUM_OF_VFS=$vfs, after a power cycle of the host"
		power_cycle=yes
	done
}

install_os() {
	local parameter arguments=()
	set -o noglob # a parameter may have a *
	for parameter in console=hvc0 console=ttyAMA0 earlycon=pl011,0x13010000 ignore_loglevel $(jq -r '.spec.grub.kernelParameters[]?' "$flavor"); do
		[[ " ${arguments[*]} " = *" $parameter "* ]] || arguments+=(--append-karg "$parameter")
	done
	set +o noglob
	say "Installing on $disk"
	coreos-installer install "$disk" --offline --ignition-file "$target" "${arguments[@]}" ||
		fail RHCOSInstallation "coreos-installer failed"
}

# boot_from_disk replaces the entries of earlier installations.
boot_from_disk() {
	local entry label="Red-Hat CoreOS GRUB"
	for entry in $(efibootmgr | sed -nE "s/^Boot([0-9A-F]{4})\*? $label.*/\1/p"); do
		efibootmgr --bootnum "$entry" --delete-bootnum
	done
	efibootmgr --create --disk "$disk" --part 2 --loader '\EFI\redhat\shimaa64.efi' --label "$label" ||
		fail RHCOSInstallation "cannot make the EFI boot entry"
}

# report repeats what the host's agent must hear.
report() { wait_for 300 5 "the host's agent: $1" /usr/local/bin/host-agent.sh "$@" || fail HostAgent "the host's agent does not answer: $1"; }

# hand_over waits until DPF goes on from installing. The power cycle, if it is needed, boots the target.
hand_over() {
	/usr/local/bin/bfupsignal.sh
	report started
	say "Waiting for DPF's phase DPU Config"
	until [ "$(/usr/local/bin/host-agent.sh phase)" = "DPU Config" ]; do
		sleep 5
	done
	while [ -n "$power_cycle" ]; do
		report power-cycle
		sleep 60
	done
}

# The host's mlx5_core must not see a second error within a minute of the first, which was this boot.
sleep 60
check
/usr/local/bin/add-identity.sh "$target" || fail Ignition "the identity cannot be added to $target"
until /usr/local/bin/host-agent.sh reachable; do
	sleep 1
done
report condition RebootMethodDiscovery True SystemLevelReset "found while the operating system is installed"
configure_firmware
install_os
boot_from_disk
sync
say "Installed"
[ "$DPUMode" = zero-trust ] || hand_over
sleep 10
systemctl reboot
