# Worker machines. A machine's only card is a tap on a VLAN's bridge in the node's network namespace: it has no route into
# the node. It runs until `lab vm-off`, or `lab down`.

lab_vm() {
  local name=${1:-} mac=${2:-} bridge=br100 user_data='' clock=utc
  [ $# -ge 2 ] || die "usage: lab vm NAME MAC [BRIDGE] --userdata FILE [--clock 2020-01-31T00:00:00]"
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      --userdata) user_data=$2; shift 2 ;;
      --clock) clock=$2; shift 2 ;;
      *) bridge=$1; shift ;;
    esac
  done
  [ -f "$user_data" ] || die "lab vm $name: --userdata FILE is what the machine boots with; there is no file ${user_data:-named}"
  power_on "$name" "$mac" "$bridge" "$user_data" "$clock"
}

power_on() { # NAME MAC BRIDGE USERDATA CLOCK
  local dir=$STATE/vm/$1
  [ ! -e "$dir/pid" ] || ! in_netns "$(cat "$dir/pid")" || die "machine $1 is on already"
  rm -rf "$dir"; mkdir -p "$dir/cidata"
  cp "$4" "$dir/cidata/user-data"
  mke2fs -q -t ext4 -d "$dir/cidata" -L cidata "$dir/cidata.img" 8M >/dev/null
  # What an emulated processor can do without: guarding against faults of a real one, clearing memory twice, confining programs, and
  # a timer for each short sleep of a Go program (a worker took 1400 timer interrupts a second, and 400 with highres=off).
  local cheaper="mitigations=off init_on_alloc=0 apparmor=0 highres=off"
  # An emulated processor may stand still for good (docs/bugs.md): the machine's own watchdog starts it again, as a real one's would.
  local watchdog="softlockup_panic=1 panic=1"
  # One processor: with two, the emulator has to order what each sees of the other, and a worker took 46 s of ours instead of 35, and longer.
  # qemu makes the tap, which goes with it; plug puts it on the bridge.
  BRIDGE=$3 setsid ip netns exec "$NETNS" qemu-system-x86_64 -name "$1" -accel tcg -smp 1 -m 2048 -rtc "base=$5" \
    -nodefaults -vga none -display none \
    -kernel "$MACHINE"/kernel/boot/vmlinuz-* -initrd "$MACHINE/initrd" -append "console=ttyS0 quiet random.trust_cpu=on $watchdog $cheaper" \
    -chardev "file,id=console,path=$dir/console" -serial chardev:console \
    -chardev "socket,id=commands,path=$dir/commands,server=on,wait=off" -serial chardev:commands \
    -drive "file=$MACHINE/disk,if=virtio,format=raw,snapshot=on" -drive "file=$dir/cidata.img,if=virtio,format=raw,readonly=on" \
    -netdev "tap,id=vlan,ifname=$1,script=$LAB/vm/plug,downscript=no" -device "virtio-net-pci,netdev=vlan,mac=$2,romfile=" \
    > "$dir/qemu.log" 2>&1 < /dev/null &
  echo $! | tee "$dir/pid"
}

lab_vm_off() {
  [ $# = 1 ] || die "usage: lab vm-off NAME"
  local pid
  pid=$(cat "$STATE/vm/$1/pid" 2>/dev/null) || die "there is no machine $1"
  in_netns "$pid" || return 0
  kill "$pid"
  while in_netns "$pid"; do sleep 0.1; done
}

# vm_exec sends one line and reads until the status that the worker's serve_commands adds.
lab_vm_exec() {
  local name=$1 line; shift
  coproc SERIAL { socat - "UNIX-CONNECT:$STATE/vm/$name/commands"; }
  echo "$*" >&"${SERIAL[1]}"
  while IFS= read -r line <&"${SERIAL[0]}"; do
    case $line in
      status=*) kill "$SERIAL_PID"; exit "${line#status=}" ;;
      *) echo "$line" ;;
    esac
  done
  die "machine $name does not answer on its serial line"
}
