#!/bin/bash
# PID 1 of the node: its own view of the machine, then the control plane and the kubelet.
set -euo pipefail
LAB=$(cd "$(dirname "$0")/.." && pwd); . "$LAB/lib/settings.sh"
PKI=$STATE/pki LOG=$NODE_STATE/log

main() {
  read -r outer_pid _ < /proc/self/stat      # /proc still is the machine's
  hostname "$NODE"
  mount_filesystems
  shadow_sysctls
  echo 1 > /proc/sys/net/ipv4/ip_forward
  # VLAN frames are bridged: they must not meet the rules of the routed pod network.
  echo 0 > /proc/sys/net/bridge/bridge-nf-call-iptables
  echo "$outer_pid" > "$NODE_STATE/node.pid.new"; mv "$NODE_STATE/node.pid.new" "$NODE_STATE/node.pid"

  start coredns -conf "$NODE_STATE/config/Corefile"
  start containerd --config "$NODE_STATE/config/containerd.toml"
  [ "$NODE" != node1 ] || start_control_plane
  start_kubelet --config="$NODE_STATE/config/kubelet.yaml" --kubeconfig="$STATE/kubelet-$NODE.kubeconfig" --housekeeping-interval=60s --hostname-override="$NODE" --node-ip="$NODE_IP"
  start kube-proxy --config="$NODE_STATE/config/proxy.yaml"
  start netpol --kubeconfig="$KUBECONFIG"
  trap 'exit 0' TERM
  while :; do wait -n || sleep 0.2; done     # reaps orphans for as long as the node lives
}

start() { "$@" > "$LOG/$1.log" 2>&1 & }

# A kubelet that is faster than containerd ends, and its unit would start it again.
start_kubelet() { while :; do kubelet "$@" || sleep 0.2; done > "$LOG/kubelet.log" 2>&1 & }

mount_filesystems() {
  mount --make-rshared /                     # kubelet and containerd want shared propagation
  umount -l /proc; mount -t proc proc /proc
  umount -l /sys/fs/cgroup; mount -t sysfs sysfs /sys; mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  local controller _
  while read -r controller _; do
    mkdir "/sys/fs/cgroup/${controller#name=}"
    case $controller in name=*) controller=none,$controller ;; esac
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/${controller##*=}"
  done < "$NODE_STATE/cgroups"
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/netns /run/lock /run/.proc
  mount -t proc proc /run/.proc              # uncovered, or pods with hostUsers: false may not mount theirs
  mount --bind "$NODE_STATE/var-lib" /var/lib; mount --bind "$NODE_STATE/var-log" /var/log
  mkdir -p /var/lib/{etcd,kubelet,containerd,cni}
}

# The kubelet insists on these machine-wide values: it is shown files that hold them.
shadow_sysctls() {
  local setting shadow
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
                 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    shadow=$NODE_STATE/sysctl/$(tr / . <<<"${setting%=*}")
    echo "${setting#*=}" > "$shadow"
    mount --bind "$shadow" "/proc/sys/${setting%=*}"
  done
}

start_control_plane() {
  start etcd --data-dir /var/lib/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync --log-level warn
  start_apiserver
  until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done
  start_controllers
}

# OwnerReferencesPermissionEnforcement: as OpenShift's API server.
start_apiserver() {
  start kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --advertise-address="$NODE_IP" --secure-port=6443 \
    --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
    --token-auth-file="$PKI/tokens.csv" --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement \
    --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$PKI/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$PKI/sa.pub" \
    --service-account-signing-key-file="$PKI/sa.key" --service-cluster-ip-range="$SERVICE_CIDR" --allow-privileged=true --profiling=false \
    --audit-policy-file="$LAB/node/config/audit.yaml" --audit-log-path="$LOG/audit.log"
}

start_controllers() {
  start kube-controller-manager --kubeconfig="$STATE/controller-manager.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false \
    --authentication-kubeconfig="$STATE/controller-manager.kubeconfig" --authorization-kubeconfig="$STATE/controller-manager.kubeconfig" \
    --kube-api-qps=500 --kube-api-burst=1000 --flex-volume-plugin-dir=/var/lib/kubelet/volumeplugins \
    --use-service-account-credentials=true --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
    --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key"
  start kube-scheduler --kubeconfig="$STATE/scheduler.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false \
    --authentication-kubeconfig="$STATE/scheduler.kubeconfig" --authorization-kubeconfig="$STATE/scheduler.kubeconfig"
}

main
