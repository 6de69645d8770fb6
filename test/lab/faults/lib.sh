# What the faults share. `FAULT before` breaks something before machine $WORKER is powered on, `FAULT after` once it is on, and `FAULT mend`
# undoes it. A fault has the name of its cause in docs/DIAGNOSE.md.
set -euo pipefail

before() { :; }
after() { :; }

k() { kubectl -n clusters "$@" >&2; }
plane() { kubectl -n clusters-c1 "$@" >&2; }

# Paused, the operator does not mend what the fault breaks.
pause() { k annotate --overwrite infra/c1 hostedcluster.densityops.com/paused=true; }
unpause() {
  k annotate infra/c1 hostedcluster.densityops.com/paused-
  # The operator sets right what was broken, and says so when it is done.
  k wait --for=condition=Ready=true infra/c1 --timeout=60s
}

# scale COMPONENT REPLICAS, both instances.
scale() {
  local kind=statefulset
  [ "$1" != proxy ] || kind=deployment
  k scale "$kind/c1-$1-deployment" "$kind/c1-$1-deployment-1" --replicas="$2"
}

# unplug takes the machine's card off its switch, as soon as it is on it.
unplug() {
  until ip -n "$LAB_NETNS" -o link show "$WORKER" 2>/dev/null | grep -q master; do sleep 0.1; done
  ip -n "$LAB_NETNS" link set "$WORKER" nomaster
}

hosted() { "$LAB_REPO/test/lab/lab" exec kubectl --kubeconfig "$(standin kubeconfig --cluster c1)" "$@" >&2; }

fault() {
  case ${1:-} in
    before|after|mend) "$1" ;;
    *) echo "usage: WORKER=NAME $0 before|after|mend" >&2; exit 2 ;;
  esac
}
