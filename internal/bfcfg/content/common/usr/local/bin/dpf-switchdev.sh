#!/bin/bash
# Puts the network functions of the card in switchdev mode, with the steering by software (smfs) that Open vSwitch with DOCA needs.
. /usr/local/bin/dpf-common.sh

functions=$(lspci -Dd 15b3: | awk '/ConnectX/ {print "pci/" $1}')

mode() { devlink dev eswitch show "$1" | awk '{print $3}'; }

steering() { devlink dev param show "$1" name flow_steering_mode | awk 'END {print $NF}'; }

# The steering can only be changed in legacy mode.
steer() {
	[ "$(steering "$1")" = dmfs ] || return 0
	[ "$(mode "$1")" = legacy ] || devlink dev eswitch set "$1" mode legacy
	devlink dev param set "$1" name flow_steering_mode value smfs cmode runtime || say "$1: cannot set steering to smfs"
}

switch() {
	local device all=0
	for device in $functions; do
		[ "$(mode "$device")" = switchdev ] || devlink dev eswitch set "$device" mode switchdev || all=1
	done
	return $all
}

for device in $functions; do
	steer "$device"
done
if ! wait_for 1800 5 "switchdev mode" switch; then
	say "ERROR: a network function is not in switchdev mode after 30 minutes"
	exit 1
fi
