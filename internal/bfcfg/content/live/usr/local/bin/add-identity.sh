#!/bin/bash
# Adds to the target's ignition, in the file $1, what DPF filled in for this DPU: a name, an identity, and in zero-trust a kubeconfig.
set -euo pipefail

# carry MODE FILE copies a file of the live system into the ignition, in place of one that is there.
carry() {
	local made
	made=$(mktemp "$target.XXXXXX")
	jq --arg path "$2" --argjson mode "$((8#$1))" --arg source "data:;base64,$(base64 -w0 "$2")" \
		'.storage.files |= map(select(.path != $path)) + [{path: $path, overwrite: true, mode: $mode, contents: {source: $source}}]' "$target" >"$made"
	mv "$made" "$target"
}

target=$1
carry 0644 /etc/hostname
carry 0644 /etc/dpf/environment
kubeconfig=/var/lib/dpf/dpuagent/bootstrap-kubeconfig
[ ! -s "$kubeconfig" ] || carry 0600 "$kubeconfig"
