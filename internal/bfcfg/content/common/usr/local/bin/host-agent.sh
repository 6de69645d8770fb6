#!/bin/bash
# Asks DPF's agent on the host, and tells it how the DPU is doing. A host that is not trusted has no such agent: nothing is said then.
# The environment has DPUName, DPUNamespace, DPUUID and DPUMode, of /etc/dpf/environment.
set -euo pipefail

[ "$DPUMode" != zero-trust ] || exit 0

agent='http://[fe80::1%25tmfifo_net0]:11029'

call() {
	curl --globoff --silent --show-error --fail-with-body --max-time 60 "$@"
}

# post PATH FIELDS [JQ-ARGUMENT...] sends the identity of the DPU and further fields.
post() {
	jq -n --arg name "$DPUName" --arg namespace "$DPUNamespace" --arg uid "$DPUUID" "${@:3}" \
		"{dpuName: \$name, dpuNamespace: \$namespace, dpuUID: \$uid} + $2" |
		call --header 'Content-Type: application/json' --data-binary @- "$agent$1"
}

condition() {
	post /update-status '{agentStatus: {conditions: [
		{type: $type, status: $status, reason: $reason, message: $message[:4096], lastTransitionTime: (now | todate)}]}}' \
		--arg type "$1" --arg status "$2" --arg reason "$3" --arg message "$4"
}

case ${1:-} in
reachable) curl --globoff --silent --output /dev/null --max-time 10 "$agent/" ;;
condition) condition "$2" "$3" "$4" "$5" ;;
error) condition InstallError True "$2" "$3" ;;
started) post /update-status '{agentStatus: {lastStartupTime: (now | todate)}}' ;;
make-vfs) post /configure-host-vfs '{}' ;;
rebind-driver) post /rebind-host-driver '{}' ;;
power-cycle) post /trigger-reboot '{rebootMethod: "PowerCycle"}' ;;
phase)
	call --get --data-urlencode group=provisioning.dpu.nvidia.com --data-urlencode version=v1alpha1 --data-urlencode kind=DPU \
		--data-urlencode "namespace=$DPUNamespace" --data-urlencode "name=$DPUName" "$agent/get-object" | jq -r .status.phase
	;;
*)
	echo "usage: $0 reachable | condition TYPE STATUS REASON MESSAGE | error REASON MESSAGE | started | make-vfs | rebind-driver | power-cycle | phase" >&2
	exit 2
	;;
esac
