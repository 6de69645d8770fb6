#!/bin/bash
# Waits until there are as many scalable functions (SFs) as the flavor's PF_TOTAL_SF: kubelet counts them once, when it starts.
. /usr/local/bin/dpf-common.sh

wanted=$(grep -oPm1 'PF_TOTAL_SF=\K[0-9]+' /etc/dpf/dpuflavor.yaml)
[ "${wanted:-0}" -gt 0 ] || exit 0

made() {
	local number
	number=$(mlnx-sf -a show -j | jq length)
	[ "${number:-0}" -ge "$wanted" ]
}

say "Waiting for $wanted scalable functions"
until made; do
	sleep 5
done
