# The Debian packages of the lab, and those that a caller names; the distribution's release pins their versions.
BUILD_PACKAGES="gcc libc6-dev pkg-config libseccomp-dev libblkid-dev python3-pip busybox-static jq cpio kmod e2fsprogs"
RUN_PACKAGES="iproute2 nftables conntrack openssl qemu-system-x86 seabios socat dnsmasq-base haproxy ethtool openvswitch-switch ovn-central ovn-host"
TEST_PACKAGES="bind9-dnsutils isc-dhcp-client isc-dhcp-relay isc-dhcp-server kea-dhcp4-server bind9 curl skopeo systemd util-linux"   # the clients and the init that tests use, and the servers that an Infra takes over from

lab_deps() {
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  say "installing:" $missing
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
  say "packages installed"
}

missing_packages() {
  comm -13 <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | awk '$1=="installed"{print $2}' | sort) \
           <(tr ' ' '\n' <<<"$BUILD_PACKAGES $RUN_PACKAGES $TEST_PACKAGES $*" | sort)
}
