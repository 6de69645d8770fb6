#!/bin/bash
# Installs DPF's agent: from the host, or in zero-trust from DPF's bfb-registry.
. /usr/local/bin/dpf-common.sh

from=(--enablerepo=agentrepo)
[ "$DPUMode" != zero-trust ] || from=(--repofrompath="agentrepo,$BFBRegistryURL/rpm/")

cd "$(mktemp -d)" || exit 1
# The registry's certificate may be of DPF's own CA, which only this download trusts.
if [ -e /etc/dpf/bfb-registry-ca.crt ]; then
	cat /etc/pki/tls/certs/ca-bundle.crt /etc/dpf/bfb-registry-ca.crt >ca.crt
	from+=(--setopt=agentrepo.sslcacert="$PWD/ca.crt")
fi
until wait_for 900 5 "the package dpu-agent" dnf download dpu-agent --disablerepo='*' "${from[@]}"; do
	complain DPUAgentInstallFailed "The package dpu-agent cannot be downloaded"
done
rpm2cpio dpu-agent*.rpm | cpio --extract --make-directories --no-absolute-filenames
install -m 0755 opt/dpf/dpuagent /usr/local/bin/.dpu-agent && restorecon /usr/local/bin/.dpu-agent &&
	mv /usr/local/bin/.dpu-agent /usr/local/bin/dpu-agent || fail DPUAgentInstallFailed "The package dpu-agent cannot be installed"
