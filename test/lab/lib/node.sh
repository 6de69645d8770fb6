# lab up, down, exec, load, vlan. A node lives in namespaces of its own; outside of it there are only a veth ($HOST_LINK),
# a named network namespace ($NETNS), child cgroups ($CGROUP), forwarding switched on, and $STATE. The second node: second.sh.
. "$LAB/node/pki.sh"

lab_up() {
  ! node_runs || die "already up"
  [ -x "$BIN/hyperkube" ] && [ -d "$CACHE/containerd" ] || die "not built yet: lab build"
  [ -d /sys/fs/cgroup/memory ] || die "this machine has no cgroup v1 hierarchies; the lab's node wants them"
  lab_down                                        # what a node that died left
  mkdir -p "$STATE"/{pki,vm}
  has_room_on_disk
  make_node_state
  make_pki
  make_network
  switch_forwarding_on
  boot_node
  wait_for 60 "kube-apiserver ready" kubectl get --raw /readyz
  kubectl apply -f "$LAB/node/manifests" > "$STATE/log/apply.log"
  await_node
  wait_for 30 "default service account made" kubectl -n default get serviceaccount default
  kubectl -n kube-system rollout status deployment/coredns --timeout=60s >/dev/null
  say "up"
}

# The kubelet evicts pods where less than 1 % of the disk is free (node/config/kubelet.yaml), and a scenario then waits in vain.
has_room_on_disk() {
  local size free
  read -r size free < <(df -BM --output=size,avail "$STATE" | tail -1 | tr -d M)
  (( free > size / 100 + 2048 )) || die "the disk has $free MiB free, and the lab needs $((size / 100 + 2048)): remove something, e.g. by go clean -cache"
}

make_node_state() {
  mkdir -p "$NODE_STATE"/{log,config,cni,sysctl,var-lib,var-log}
  render_configs
  link_images
}

boot_node() {
  LAB_NODE=$NODE setsid bash "$LAB/node/start.sh" > "$NODE_STATE/log/node.log" 2>&1 < /dev/null &
  wait_for 10 "namespaces made" test -s "$NODE_STATE/node.pid"
  wait_for 20 "containerd answers" lab_exec ctr version
}

await_node() {
  wait_for 60 "$NODE registered" kubectl get node "$NODE"
  kubectl wait --for=condition=Ready "node/$NODE" --timeout=60s >/dev/null
  say "$NODE Ready"
  lab_load "$IMAGES"/{oooi,standin}.tar
  say "images imported"
}

node_runs() { [ -s "$NODE_STATE/node.pid" ] && in_netns "$(cat "$NODE_STATE/node.pid")"; }

# in_netns tells our node from a later process that got the same pid.
in_netns() { [ -e "/run/netns/$NETNS" ] && [ "$(stat -Lc %i "/proc/$1/ns/net" 2>/dev/null)" = "$(stat -Lc %i "/run/netns/$NETNS" 2>/dev/null)" ]; }

render_configs() {
  local MAX_FILES variable file edits=()
  MAX_FILES=$(ulimit -Hn)
  for variable in BIN CNI_BIN STATE NODE_STATE NODE NODE_IP POD_CIDR DNS_SERVICE_IP MAX_FILES; do
    edits+=(-e "s|@$variable@|${!variable}|g")
  done
  for file in kubelet.yaml proxy.yaml containerd.toml Corefile; do
    sed "${edits[@]}" "$LAB/node/config/$file" > "$NODE_STATE/config/$file"
  done
  sed "${edits[@]}" "$LAB/node/config/multus.conf" > "$NODE_STATE/cni/00-multus.conf"
  echo "nameserver $NODE_IP" > "$NODE_STATE/config/resolv.conf"
}

# link_images gives containerd the images that were unpacked once. Blobs and unpacked layers are never written to, so hard links
# do; the databases are copied.
link_images() {
  cp -al "$CACHE/containerd" "$NODE_STATE/var-lib/containerd"
  local database
  find "$NODE_STATE/var-lib/containerd" -name '*.db' | while read -r database; do
    cp --remove-destination "$CACHE/containerd/${database#"$NODE_STATE/var-lib/containerd/"}" "$database"
  done
}

# A pod's namespace inherits forwarding from the machine's first one (devconf_inherit_init_net), which is a real node's own.
# It must be on here too, or our pods would not route for the wrong reason.
# What it was is kept by the first lab that is up, and put back when the last one goes.
switch_forwarding_on() {
  (set -o noclobber; cat /proc/sys/net/ipv4/ip_forward > "$FORWARDING") 2>/dev/null || true
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

restore_forwarding() {
  compgen -G '/run/netns/oooi-lab[0-9]' >/dev/null || [ ! -s "$FORWARDING" ] || { cat "$FORWARDING" > /proc/sys/net/ipv4/ip_forward; rm -f "$FORWARDING"; }
}

make_network() {
  ip netns add "$NETNS"
  ip link add "$HOST_LINK" type veth peer name eth0 netns "$NETNS"
  ip addr add "$GATEWAY/30" dev "$HOST_LINK"; ip link set "$HOST_LINK" up
  address_node
}

# address_node behind the gateway at the other end of its eth0.
address_node() {
  ip -n "$NETNS" link set lo up
  ip -n "$NETNS" addr add "$NODE_IP/30" dev eth0; ip -n "$NETNS" link set eth0 up
  ip -n "$NETNS" route add default via "$GATEWAY"
}

lab_exec() {
  node_runs || die "$NODE is not up"
  nsenter -t "$(cat "$NODE_STATE/node.pid")" --mount --net --pid --uts --ipc --cgroup "$@"
}

lab_load() {
  local tar
  for tar; do
    lab_exec ctr -n k8s.io images import --local "$tar" >> "$NODE_STATE/log/import.log" 2>&1 || die "import of $tar failed: see $NODE_STATE/log/import.log"
  done
}

lab_vlan() {
  [ $# = 1 ] || die "usage: lab vlan NAME"
  ip -n "$NETNS" link show "br$1" >/dev/null 2>&1 && return
  ip -n "$NETNS" link add "br$1" type bridge
  ip -n "$NETNS" link set "br$1" up
  [ "$NODE" = node1 ] || carry_vlan "$1"
}

# Everything that lives in our network namespaces is ours: the node's PID 1, with it all in its pid namespace, the machines, and the
# neighbours that a run has left which was broken off.
lab_down() {
  local netns
  for netns in "/run/netns/$NETNS" "/run/netns/$NETNS"-*; do end_netns "${netns##*/}"; done
  ip link del "$HOST_LINK" 2>/dev/null || true
  remove_cgroups "$STATE/cgroups" "$STATE/node2/cgroups"
  restore_forwarding
  rm -rf "$STATE"
}

end_netns() {
  local pid
  [ -e "/run/netns/$1" ] || return 0
  for pid in $(ip netns pids "$1"); do kill -KILL "$pid" 2>/dev/null || true; done
  while [ -n "$(ip netns pids "$1")" ]; do sleep 0.1; done
  ip netns del "$1"
  rm -rf "/etc/netns/$1"
}

# remove_cgroups that are listed in files, of which none need be there.
remove_cgroups() {
  local try directory left file all=
  for file; do [ ! -e "$file" ] || all+=$(<"$file")$'\n'; done
  for try in {1..50}; do
    left=
    while read -r _ directory; do
      [ ! -d "$directory" ] || find "$directory" -depth -type d -exec rmdir {} + 2>/dev/null || left+=" $directory"
    done <<<"$all"
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  die "cgroups still in use:$left"
}
