#!/bin/bash
# Tells DPF which image is booted (condition MachineOSURL).
. /usr/local/bin/dpf-common.sh

image=$(rpm-ostree status --json | jq -r '.deployments[] | select(.booted) | ."container-image-reference" // "" | sub("^[^:]*:"; "")')
if [ -n "$image" ]; then
	/usr/local/bin/host-agent.sh condition MachineOSURL True Reported "$image"
else
	/usr/local/bin/host-agent.sh condition MachineOSURL False LookupFailed "rpm-ostree names no image of the booted deployment"
fi
