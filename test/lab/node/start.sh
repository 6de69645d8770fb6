#!/bin/bash
# Enters child cgroups and the node's network namespace, then unshares the rest: init.sh becomes PID 1 of the node.
set -euo pipefail
LAB=$(cd "$(dirname "$0")/.." && pwd); . "$LAB/lib/settings.sh"

# A child of our own cgroup in each v1 hierarchy. Read whole first: the file changes as this process moves.
own=$(cat /proc/self/cgroup)
while IFS=: read -r _ controller path; do
  root=/sys/fs/cgroup/${controller#name=}
  [ -n "$controller" ] && [ -d "$root" ] || continue
  child=$root${path%/}/$CGROUP
  mkdir -p "$child"
  if [ "$controller" = cpuset ]; then
    cat "$child/../cpuset.cpus" > "$child/cpuset.cpus"; cat "$child/../cpuset.mems" > "$child/cpuset.mems"
  fi
  # By default a group weighs as much as one process beside it, however many it holds. A node has its machine to itself, and
  # a worker, here an emulator beside the node, has processors of its own.
  [ "$controller" != cpu ] || echo 102400 > "$child/cpu.shares"
  echo $BASHPID > "$child/cgroup.procs"
  echo "$controller $child" >> "$NODE_STATE/cgroups"
done <<<"$own"
# A third of a kube-apiserver's processor time was garbage collection. It takes what its own scheduler believes to be idle (runtime, GC
# "idle" workers), which in a lab is another process's; memory there is enough of.
export GOGC=400
exec nsenter --net="/run/netns/$NETNS" unshare --cgroup --mount --pid --uts --ipc --fork --kill-child --propagation private \
  bash "$LAB/node/init.sh"
