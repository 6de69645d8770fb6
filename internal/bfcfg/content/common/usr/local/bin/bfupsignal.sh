#!/bin/bash
# Tells the host, through rshim, that the DPU is up.
. /usr/local/bin/dpf-common.sh

say "Linux up"
say "DPU is ready"
[ ! -e "$rshim/os_up" ] || echo 1 >"$rshim/os_up"
