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

# shows FROM TO NAME has Ignition's front show a certificate for a name, of dates like 20260101000000Z; shows_again undoes that.
shows() {
  local made=$LAB_STATE/shown
  rm -rf "$made" && mkdir "$made" && touch "$made/index"
  printf '%s\n' '[ca]' default_ca=own '[own]' "database=$made/index" "new_certs_dir=$made" rand_serial=yes default_md=sha256 policy=any x509_extensions=names \
    '[any]' commonName=supplied '[names]' "subjectAltName=DNS:$3" > "$made/config"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ignition -keyout "$made/tls.key" -out "$made/request" 2>/dev/null
  openssl ca -batch -notext -selfsign -config "$made/config" -keyfile "$made/tls.key" -startdate "$1" -enddate "$2" -in "$made/request" -out "$made/tls.crt" 2>/dev/null
  kubectl -n clusters-c1 get secret ignition-server-serving-cert -o jsonpath='{.data}' > "$LAB_STATE/shown.before"
  shown '{"tls.crt":"'"$(base64 -w0 "$made/tls.crt")"'","tls.key":"'"$(base64 -w0 "$made/tls.key")"'"}'
}
shows_again() { shown "$(cat "$LAB_STATE/shown.before")"; unfaulted; }
shown() {
  plane patch secret ignition-server-serving-cert --type=merge -p '{"data":'"$1"'}'
  plane rollout restart deployment/ignition-server-proxy # it loads its certificate when it starts
  plane rollout status deployment/ignition-server-proxy --timeout=120s
}
ignition_host() { kubectl -n clusters get hostedcluster c1 -o jsonpath='{.status.ignitionEndpoint}' | cut -d: -f1; }

# front COMMAND… has Ignition's front run another command, without a probe, as HyperShift's HAProxy is (v0.1.60, assets/ignition-server-proxy/deployment.yaml);
# front_again undoes that.
front() {
  plane patch deployment/ignition-server-proxy --type=json -p '[{"op":"remove","path":"/spec/template/spec/containers/0/readinessProbe"},
    {"op":"replace","path":"/spec/template/spec/containers/0/command","value":['"$(printf '"%s",' "$@" | sed 's/,$//')"']}]'
  plane rollout status deployment/ignition-server-proxy --timeout=120s
}
front_again() { plane rollout undo deployment/ignition-server-proxy; plane rollout status deployment/ignition-server-proxy --timeout=120s; unfaulted; }

# unfaulted waits until the proxy has probed anew, so that the next fault is not taken for this one.
unfaulted() { timeout 90 bash -c 'while kubectl -n clusters get oproxy c1-proxy -o yaml | grep -q "fault:"; do sleep 1; done'; }

# refuses_anew has an ignition server tell of each refusal again: of many of one config it tells only every five minutes.
refuses_anew() { plane rollout restart deployment/ignition-server; plane rollout status deployment/ignition-server --timeout=60s; }

hosted() { "$LAB_REPO/test/lab/lab" exec kubectl --kubeconfig "$(standin kubeconfig --cluster c1)" "$@" >&2; }

# pending waits until the machine's kubelet has asked for its client certificate, while nobody approves it, and prints the name of its CSR.
pending() {
  until "$LAB_REPO/test/lab/lab" exec kubectl --kubeconfig "$(standin kubeconfig --cluster c1)" get csr \
    -o jsonpath='{range .items[?(@.spec.signerName=="kubernetes.io/kube-apiserver-client-kubelet")]}{.metadata.name} {.spec.request} {.status.conditions}{"\n"}{end}' | of_worker; do sleep 0.5; done
}
of_worker() {
  local name request decided
  while read -r name request decided; do
    if [ -z "$decided" ] && base64 -d <<< "$request" | openssl req -noout -subject | grep -q "system:node:$WORKER\$"; then echo "$name"; return; fi
  done
  return 1
}

fault() {
  case ${1:-} in
    before|after|mend) "$1" ;;
    *) echo "usage: WORKER=NAME $0 before|after|mend" >&2; exit 2 ;;
  esac
}
