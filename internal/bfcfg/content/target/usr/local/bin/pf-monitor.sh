#!/bin/bash
# Tells DPF when the link of a physical function goes down (conditions PF0LinkDown and PF1LinkDown) or comes back.
. /usr/local/bin/dpf-common.sh

declare -A told

# tell LABEL INTERFACE STATE; what DPF did not hear is told again.
tell() {
	local status=True reason=$1LinkDown
	[ "${told[$1]}" != "$2 $3" ] || return
	[ "$3" != up ] || { status=False reason=$1LinkUp; }
	say "$1 ($2): $3"
	/usr/local/bin/host-agent.sh condition "$1LinkDown" "$status" "$reason" "$2 is $3" && told[$1]="$2 $3"
}

while sleep 30; do
	number=0
	for interface in $(devlink -j port show | jq -r '.port[] | select(.flavour == "physical") | .netdev // empty' | sort); do
		tell "PF$number" "$interface" "$(cat "/sys/class/net/$interface/operstate")"
		number=$((number + 1))
	done
done
