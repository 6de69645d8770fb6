# What a worker machine boots: Debian's cloud kernel, an initramfs with the real Ignition, a root disk with containerd and kubelet.
INITRD_MODULES="virtio_pci virtio_net virtio_blk overlay bridge veth"

inputs_kernel() { echo "$INITRD_MODULES"; }
build_kernel() {
  local package out=$CACHE/tmp/kernel
  rm -rf "$out" "$MACHINE/kernel"; mkdir -p "$out"
  package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
  [ -n "$package" ] || die "no package lists: run apt-get update"
  ( cd "$out" && apt-get download -qq "$package" 2>/dev/null && dpkg -x ./*.deb "$MACHINE/kernel" )
  rm -rf "$out"
  depmod -b "$MACHINE/kernel" "$(ls "$MACHINE/kernel/lib/modules")"
}

inputs_worker() { declare -f preload_images; find "$LAB/vm" "$LAB/lib/machine.sh" -type f; stamps_of kernel kube node cni runc images ignition apiserver-proxy guest metallb; }
build_worker() {
  local out=$CACHE/tmp/worker
  rm -rf "$out"; mkdir -p "$out"
  pack_initrd "$out/initrd"
  pack_disk "$out/root"
  rm -rf "$out"
}

# Not compressed: the emulated processor would take longer to unpack it than to copy it.
pack_initrd() {
  local root=$1
  mkdir -p "$root"/{bin,sbin,usr/bin,lib/modules,proc,sys,dev,run,tmp,sysroot,userdata,etc}
  install_busybox "$root/bin"
  install -m 755 vm/initrd/init "$root/init"
  install -m 755 vm/initrd/udhcpc.script "$root/etc/udhcpc.script"
  ln -s /run/resolv.conf "$root/etc/resolv.conf"
  install_with_libraries "$root" "$BIN/ignition"
  install_modules "$root/lib/modules" $INITRD_MODULES
  ( cd "$root" && find . | sort | cpio --quiet -o -H newc > "$MACHINE/initrd" )
}

install_busybox() {
  cp /usr/bin/busybox "$1/busybox"
  local applet
  for applet in $(busybox --list | grep -vx busybox); do ln -s busybox "$1/$applet"; done
}

install_with_libraries() { # ROOT BINARY
  local library
  install -m 755 "$2" "$1/usr/bin/"
  for library in $(shared_libraries "$2"); do install -D "$library" "$1$library"; done
}

# install_modules copies each module after those it needs, and lists them in that order.
install_modules() { # DIRECTORY MODULE…
  local modules=$MACHINE/kernel/lib/modules directory=$1 name file; shift
  modules=$modules/$(ls "$modules")
  for name; do
    grep "/$name\.ko:" "$modules/modules.dep" | tr -d : | tr ' ' '\n' | tac
  done | awk '!seen[$0]++' | while read -r file; do
    cp "$modules/$file" "$directory/"; basename "$file" >> "$directory/order"
  done
}

# pack_disk has the images for *.apps unpacked, too, once they are built: the demo does without.
pack_disk() {
  local root=$1 name
  mkdir -p "$root"/{bin,sbin,usr/bin,opt/cni/bin,proc,sys,dev,run,tmp,root,etc/kubernetes/manifests,var/lib/kubelet,var/log}
  install_busybox "$root/bin"
  cp "$BIN"/{hyperkube,containerd,containerd-shim-runc-v2,ctr,testapp} "$root/usr/bin/"
  for name in kubelet kubectl; do ln -s hyperkube "$root/usr/bin/$name"; done
  for name in "$BIN/runc" /usr/bin/{dig,curl}; do install_with_libraries "$root" "$name"; done
  cp "$CNI_BIN"/{bridge,host-local,loopback} "$root/opt/cni/bin/"
  cp -r vm/root/etc "$root/"
  install -m 755 vm/root/init "$root/sbin/init"
  install -m 755 vm/initrd/udhcpc.script "$root/etc/udhcpc.script"
  ln -s /run/resolv.conf "$root/etc/resolv.conf"
  preload_images "$root/var/lib/containerd" "$IMAGES"/{pause,testapp,konnectivity,kube-apiserver-proxy}.tar \
    $(find "$IMAGES" -name kube-proxy.tar -o -name router.tar -o -name controller.tar -o -name speaker.tar | sort)
  rm -f "$MACHINE/disk"
  mke2fs -q -t ext4 -d "$root" -L root -E lazy_itable_init=1 "$MACHINE/disk" 2G >/dev/null
}
