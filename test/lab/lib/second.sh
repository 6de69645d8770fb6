# lab node2, node2-off, cut, mend: a second node beside the first, on the same VLANs. A link to the first node carries what the nodes and
# their pods say to each other, and one for each VLAN joins the two bridges of its name, as a switch would.

lab_node2() {
  node_runs || die "the first node is not up: lab up"
  local vlans
  vlans=$(bridges_of "$NETNS")
  on_node node2
  ! node_runs || die "node2 is up already"
  lab_node2_off                                   # what is left of one that died
  make_node_state
  join_nodes
  for vlan in $vlans; do lab_vlan "${vlan#br}"; done
  boot_node
  await_node
}

# lab_node2_off pulls its plug: nothing on it ends in an orderly way, and its Node stays. What was on its disk is gone.
lab_node2_off() {
  on_node node2
  end_netns "$NETNS"
  remove_cgroups "$NODE_STATE/cgroups"
  rm -rf "$NODE_STATE"
}

bridges_of() { ip -n "$1" -br link show type bridge | awk '{print $1}' | grep '^br' || true; }

join_nodes() {
  ip netns add "$NETNS"
  ip link add node2 netns "$FIRST_NETNS" type veth peer name eth0 netns "$NETNS"
  ip -n "$FIRST_NETNS" addr add "$GATEWAY/30" dev node2; ip -n "$FIRST_NETNS" link set node2 up
  ip -n "$FIRST_NETNS" route add "$POD_CIDR" via "$NODE_IP"
  address_node
}

# carry_vlan joins br NAME of the second node to the first one's.
carry_vlan() {
  ip -n "$FIRST_NETNS" link show "to-$1" >/dev/null 2>&1 && return
  ip link add "to-$1" netns "$FIRST_NETNS" type veth peer name "up-$1" netns "$NETNS"
  ip -n "$FIRST_NETNS" link set "to-$1" master "br$1" up
  ip -n "$NETNS" link set "up-$1" master "br$1" up
}

# lab_cut cuts the second node off without notice: from everything, from the API server alone, or from its VLANs alone.
lab_cut() {
  on_node node2
  case ${1:-} in
    all) set_links down ;;
    vlan) set_links down up- ;;
    api) ip netns exec "$NETNS" nft -f - <<EOF
table ip cut {
  chain to { type filter hook postrouting priority 300; ip daddr $API_IP drop; }
  chain from { type filter hook prerouting priority -300; ip saddr $API_IP drop; ip saddr $GATEWAY tcp dport 10250 drop; }
}
EOF
    ;;
    *) die "usage: lab cut all|api|vlan" ;;
  esac
}

# lab_mend undoes every cut.
lab_mend() {
  on_node node2
  ip netns exec "$NETNS" nft delete table ip cut 2>/dev/null || true
  set_links up
  ip -n "$NETNS" route replace default via "$GATEWAY"
}

# set_links of the second node up or down: those whose names begin so, or all. A default route goes with its link.
set_links() {
  local link
  for link in $(ip -n "$NETNS" -br link show | awk -F'[ @]' '{print $1}'); do
    case $link in "${2:-eth0}"*|up-*) ip -n "$NETNS" link set "$link" "$1" ;; esac
  done
}
