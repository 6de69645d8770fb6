#!/bin/bash
# Waits for DPF's agent on the host, for as long as it takes. In zero-trust there is nothing to wait for.
. /usr/local/bin/dpf-common.sh

say "Waiting for the host's agent"
until /usr/local/bin/host-agent.sh reachable; do
	sleep 5
done
/usr/local/bin/host-agent.sh condition HostAgentConnected True Connected "The host's agent answers over tmfifo_net0"
# What still holds of an earlier boot is told again, by units that come after this one, and has a time of its own then.
/usr/local/bin/host-agent.sh condition InstallError False Started "The installed system has started"
exit 0
