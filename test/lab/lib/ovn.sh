# lab ovn: a real OVN beside the node's Linux bridges, in Open vSwitch's userspace datapath, which needs no kernel module. Its
# processes live in the node's network namespace and go with it; who makes ports on it: ovnkube/.

# A VLAN of the physical network physnet. Its outer side is the bridge brVLAN, untagged as behind a switch's access port:
# machines and neighbours are attached there as anywhere. On br-phys it is tagged, by Open vSwitch: the kernel knows no VLANs.
lab_ovn() {
  [[ ${1:-} =~ ^[0-9]+$ ]] || die "usage: lab ovn VLAN"
  [ -e "$OVN_RUNDIR" ] || start_ovn
  lab_vlan "$1"
  ! ip -n "$NETNS" link show "phys$1" >/dev/null 2>&1 || return 0
  ip -n "$NETNS" link add "phys$1" type veth peer name "access$1"
  local end
  for end in "phys$1" "access$1"; do
    # A checksum left for a card to fill in would stay empty: the userspace datapath does not know of it.
    ip netns exec "$NETNS" ethtool -K "$end" tx off >/dev/null
    ip -n "$NETNS" link set "$end" up
  done
  ip -n "$NETNS" link set "access$1" master "br$1"
  ovs-vsctl add-port br-phys "phys$1" tag="$1"
}

start_ovn() {
  local schema
  mkdir -p "$OVN_RUNDIR"
  for schema in openvswitch/vswitch ovn/ovn-nb ovn/ovn-sb; do
    ovsdb-tool create "$OVN_RUNDIR/${schema#*/}.db" "/usr/share/$schema.ovsschema"
  done
  ovn_daemon ovsdb-server --remote="punix:$OVN_RUNDIR/db.sock" "$OVN_RUNDIR"/*.db
  ovs-vsctl --no-wait init -- set open . external-ids:system-id="$NODE" external-ids:ovn-remote="unix:$OVN_RUNDIR/db.sock" \
    external-ids:ovn-encap-type=geneve external-ids:ovn-encap-ip=127.0.0.1 \
    external-ids:ovn-bridge-mappings=physnet:br-phys external-ids:ovn-bridge-datapath-type=netdev
  ovn_daemon ovs-vswitchd
  ovn_daemon ovn-northd --ovnnb-db="$OVN_NB_DB" --ovnsb-db="$OVN_NB_DB"
  ovs-vsctl add-br br-phys -- set bridge br-phys datapath_type=netdev \
    -- add-br br-int -- set bridge br-int datapath_type=netdev fail-mode=secure other-config:disable-in-band=true
  ovn_daemon ovn-controller
}

ovn_daemon() { ip netns exec "$NETNS" "$@" --detach --no-chdir --pidfile="$OVN_RUNDIR/$1.pid" --log-file="$STATE/log/$1.log" 2>/dev/null; }
