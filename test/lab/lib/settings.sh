# Names and places. CACHE keeps what is built; STATE is one running lab and is removed by `lab down`. LAB_NUMBER=1 is a second
# lab beside the first.
NUMBER=${LAB_NUMBER:-0}
REPO=$(cd "$LAB/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/oooi-lab
BIN=$CACHE/bin CNI_BIN=$CACHE/bin/cni IMAGES=$CACHE/images MACHINE=$CACHE/vm STATE=$CACHE/state/$NUMBER

FORWARDING=$CACHE/state/ip_forward # this machine's, before any lab

# on_node chooses the node that commands are about: node1 has the control plane, and node2 is a second one that scenarios may start.
on_node() {
  local network=172.31.$((254 - NUMBER))
  NODE=$1 API_IP=$network.2
  case $NODE in
    node1) NODE_STATE=$STATE NETNS=oooi-lab$NUMBER NODE_IP=$API_IP POD_CIDR=10.244.0.0/24 GATEWAY=$network.1 ;;
    node2) NODE_STATE=$STATE/node2 NETNS=oooi-lab$NUMBER-node2 NODE_IP=$network.6 POD_CIDR=10.244.1.0/24 GATEWAY=$network.5 ;;
    *) echo "lab: there are node1 and node2, and no $NODE" >&2; exit 2 ;;
  esac
  CGROUP=$NETNS
}
on_node "${LAB_NODE:-node1}"
FIRST_NETNS=oooi-lab$NUMBER # the first node's network namespace
HOST_LINK=oooi-lab$NUMBER   # this machine's end of the veth to it
SERVICE_CIDR=10.96.0.0/16 API_SERVICE_IP=10.96.0.1 DNS_SERVICE_IP=10.96.0.10

export KUBECONFIG=$STATE/admin.kubeconfig PATH=$BIN:$PATH
# Where OVN's and Open vSwitch's own tools look.
export OVS_RUNDIR=$STATE/ovn OVN_RUNDIR=$STATE/ovn OVN_NB_DB=unix:$STATE/ovn/db.sock
STARTED=${EPOCHREALTIME/./}   # in microseconds

# say prints a progress line with the seconds since this command began.
say() {
  local tenths=$(((${EPOCHREALTIME/./} - STARTED) / 100000))
  printf '[%4d.%ds] %s\n' $((tenths / 10)) $((tenths % 10)) "$*" >&2
}
die() { echo "lab: $*" >&2; exit 1; }

# wait_for SECONDS WHAT CMD… polls CMD, because what it waits for (a process, a socket, an API's first answer) sends no event.
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || die "$what: still not so; logs are in $NODE_STATE/log"
    sleep 0.1
  done
  say "$what"
}

lab_env() {
  cat <<EOF
export KUBECONFIG=$KUBECONFIG
export PATH=$BIN:\$PATH
export KUBEBUILDER_ASSETS=$BIN
export OOOI_ENVOY=$BIN/envoy
export AUDIT_LOG=$STATE/log/audit.log
export LAB_STATE=$STATE
export LAB_REPO=$REPO
export LAB_NETNS=$NETNS
export LAB_IMAGES=$IMAGES
export LAB_BIN=$BIN
EOF
}
