#!/bin/bash
# Has the host make VFs, of which pf0vf0 is the DPU's way to its API, and waits for an address there; an isolated network has no default
# route. In zero-trust the host is asked for nothing, and the way is oob_net0.
. /usr/local/bin/dpf-common.sh

way=br-comm-ch
[ "$DPUMode" != zero-trust ] || way=oob_net0
attempts=0
next_rebind=0

# A host whose driver does not make VFs recovers when the driver is bound anew; then it needs eight minutes of rest.
rebind() {
	attempts=$((attempts + 1))
	[ "$attempts" -ge 3 ] && [ "$SECONDS" -ge "$next_rebind" ] || return
	say "No VFs after $attempts attempts: the host binds its driver anew"
	/usr/local/bin/host-agent.sh rebind-driver
	attempts=0
	next_rebind=$((SECONDS + 480))
}

make_vfs() {
	/usr/local/bin/host-agent.sh make-vfs
	[ -n "$(devlink port show | grep 'flavour pcivf')" ] && return
	rebind
	return 1
}

# To ip, an address whose lease never ends is not "dynamic".
addressed() { [ -n "$(ip -4 -o address show dev "$way" scope global 2>/dev/null)" ]; }

# Nothing can go on without, so that it never gives up.
until [ "$DPUMode" = zero-trust ] || wait_for 1800 30 "VFs" make_vfs; do
	complain VFSetupTimedOut "The host has made no VFs in 30 minutes"
done
until wait_for 1800 5 "an address" addressed; do
	complain VFSetupTimedOut "The DPU has no address after 30 minutes: see the DHCP server of its network"
done
