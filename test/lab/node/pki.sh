# The node's certificates and kubeconfigs, made in $STATE. Sourced by lib/node.sh.

make_pki() {
  ( cd "$STATE/pki" && make_certificates && make_users )
  chmod -R go-rwx "$STATE/pki" "$STATE"/*.kubeconfig
}

make_certificates() {
  authority ca /CN=oooi-lab-ca
  authority front-proxy-ca /CN=oooi-lab-front-proxy-ca
  local api="IP:$NODE_IP,IP:127.0.0.1,IP:$API_SERVICE_IP,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  certificate ca apiserver /CN=kube-apiserver "$api"
  certificate ca kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client DNS:kubelet-client
  local node
  for node in node1 node2; do
    certificate ca "kubelet-$node" "/O=system:nodes/CN=system:node:$node" "IP:$(on_node $node; echo "$NODE_IP"),DNS:$node"
  done
  certificate front-proxy-ca front-proxy /CN=front-proxy-client DNS:front-proxy-client
  key sa
  openssl pkey -in sa.key -pubout -out sa.pub
}

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }

authority() { # NAME SUBJECT
  key "$1"
  openssl req -x509 -new -key "$1.key" -days 3650 -subj "$2" -out "$1.crt"
}

certificate() { # CA NAME SUBJECT SAN,…
  key "$2"
  openssl req -new -key "$2.key" -subj "$3" |
    openssl x509 -req -CA "$1.crt" -CAkey "$1.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 -out "$2.crt" \
      -extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=%s' "$4") 2>/dev/null
}

make_users() {
  : > tokens.csv
  user admin admin system:masters
  user kubelet-node1 system:node:node1 system:nodes
  user kubelet-node2 system:node:node2 system:nodes
  user controller-manager system:kube-controller-manager
  user scheduler system:kube-scheduler
  user proxy system:kube-proxy
  user multus multus
}

user() { # FILE USER [GROUP]
  local token
  token=$(openssl rand -hex 16)
  echo "$token,$2,$2${3:+,\"$3\"}" >> tokens.csv
  cat > "$STATE/$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://$API_IP:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {token: $token}}]
contexts: [{name: lab, context: {cluster: lab, user: $1}}]
current-context: lab
EOF
}
