package scene

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Neighbour is an on-link client of a VLAN: a network namespace with a card on its bridge.
type Neighbour struct {
	// Bridge is the VLAN's bridge in the node.
	Bridge string
	netns  string
	scene  *Scene
}

// NewNeighbour attaches a client to a bridge of the node; without an address, it can request a lease. The name of its network namespace
// tells `lab down` that it is this lab's.
func (s *Scene) NewNeighbour(ctx context.Context, name, bridge, address string) (*Neighbour, error) {
	node := os.Getenv("LAB_NETNS")
	n := &Neighbour{Bridge: bridge, netns: node + "-" + name, scene: s}
	for _, args := range []string{
		"netns add " + n.netns,
		"-n " + node + " link add n-" + name + " type veth peer name eth0 netns " + n.netns,
		"-n " + node + " link set n-" + name + " master " + bridge + " up",
		"-n " + n.netns + " link set lo up",
		"-n " + n.netns + " link set eth0 up",
	} {
		if _, err := s.Run(ctx, "ip", strings.Fields(args)...); err != nil {
			return n, err
		}
	}
	if address == "" {
		return n, nil
	}
	_, err := s.Run(ctx, "ip", "-n", n.netns, "addr", "add", address, "dev", "eth0")
	return n, err
}

// Lease is what a DHCP server assigned: the address, and the resolvers.
type Lease struct {
	Address   string
	Resolvers []string
}

// Lease requests a lease as a worker's initramfs does, with the same client and script. The script writes into /run and may set the
// hostname, so both are private to it.
func (n *Neighbour) Lease(ctx context.Context) (Lease, error) {
	const ask = "mount -t tmpfs tmpfs /run && busybox udhcpc -f -n -q -i eth0 -t 3 -T 1 -s test/lab/vm/initrd/udhcpc.script -O search -O mtu -O ntpsrv -O staticroutes >&2 && cat /run/lease /run/resolv.conf"
	out, err := n.Run(ctx, "unshare", "--mount", "--uts", "sh", "-c", ask)
	if err != nil {
		return Lease{}, err
	}
	address, _, _ := strings.Cut(out, "/")
	given := Lease{Address: address}
	for line := range strings.Lines(out) {
		if server, is := strings.CutPrefix(strings.TrimSpace(line), "nameserver "); is {
			given.Resolvers = append(given.Resolvers, server)
		}
	}
	return given, nil
}

// Release gives back what Lease asked for, by asking once more: udhcpc does both in one run.
func (n *Neighbour) Release(ctx context.Context) error {
	_, err := n.Run(ctx, "busybox", "udhcpc", "-f", "-n", "-R", "-i", "eth0", "-t", "3", "-T", "1", "-s", "test/lab/scene/release.script")
	return err
}

// Becomes makes it another machine: the card gets a new MAC address, and the first machine's lease stays.
func (n *Neighbour) Becomes(ctx context.Context, mac string) error {
	_, err := n.Run(ctx, "sh", "-c", "ip addr flush dev eth0 && ip link set eth0 address "+mac)
	return err
}

// Asks makes the client resolve names through DNS servers, in this order: ip-netns(8) mounts this directory as the client's /etc.
func (n *Neighbour) Asks(servers ...string) error {
	etc := n.etc()
	lines := "nameserver " + strings.Join(servers, "\nnameserver ") + "\n"
	return errors.Join(os.MkdirAll(etc, 0o750), os.WriteFile(etc+"/resolv.conf", []byte(lines), 0o600))
}

func (n *Neighbour) etc() string { return "/etc/netns/" + n.netns }

// Remove deletes the client, and its card, which else stays as long as a process of the client does.
func (n *Neighbour) Remove(ctx context.Context) error {
	_, cardErr := n.Run(ctx, "ip", "link", "del", "eth0")
	_, err := n.scene.Run(ctx, "ip", "netns", "del", n.netns)
	return errors.Join(cardErr, err, os.RemoveAll(n.etc()))
}

// Run runs a command as the client.
func (n *Neighbour) Run(ctx context.Context, command ...string) (string, error) {
	return n.scene.Run(ctx, "ip", append([]string{"netns", "exec", n.netns}, command...)...)
}

// Dial connects as the client.
func (n *Neighbour) Dial(address string, timeout time.Duration) (net.Conn, error) {
	var conn net.Conn
	err := n.within(func() (err error) {
		conn, err = net.DialTimeout("tcp", address, timeout)
		return err
	})
	return conn, err
}

// Resolve asks a DNS server for a name's IPv4 addresses as the client.
func (n *Neighbour) Resolve(ctx context.Context, server, name string) ([]string, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		err = n.within(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(server, "53"))
			return err
		})
		return conn, err
	}}
	found, err := resolver.LookupNetIP(ctx, "ip4", name+".")
	var all []string
	for _, address := range found {
		all = append(all, address.Unmap().String())
	}
	return all, err
}

// within runs do on a thread in the client's network namespace. The thread is not reused: its goroutine ends while locked to it.
func (n *Neighbour) within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		f, err := os.Open("/run/netns/" + n.netns)
		if err != nil {
			done <- err
			return
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("entering %s: %w", n.netns, err)
			return
		}
		done <- do()
	}()
	return <-done
}

// Capture reads what the client's card sends and receives until the context ends, as packet(7) gives it; at is the kernel's time of the
// frame, and own the hardware address that the card sent from last.
func (n *Neighbour) Capture(ctx context.Context, each func(at time.Time, own net.HardwareAddr, frame []byte)) error {
	socket, err := n.packets()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	var own net.HardwareAddr
	for frame, control := make([]byte, 1<<16), make([]byte, 64); ctx.Err() == nil; {
		length, controls, _, from, err := unix.Recvmsg(socket, frame, control, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		at, err := timestamp(control[:controls])
		if err != nil {
			return err
		}
		if card, is := from.(*unix.SockaddrLinklayer); is && card.Pkttype == unix.PACKET_OUTGOING && length >= 14 {
			own = net.HardwareAddr(slices.Clone(frame[6:12]))
		}
		each(at, own, frame[:length])
	}
	return nil
}

// packets is a socket of the client's card, whose reads wait 0.2 s at most.
func (n *Neighbour) packets() (socket int, err error) {
	const every = 0x0300 // ETH_P_ALL in the network's byte order
	err = n.within(func() error {
		card, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, every); err != nil {
			return err
		}
		return errors.Join(unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: every, Ifindex: card.Index}),
			unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}))
	})
	return socket, err
}

// timestamp of a frame (socket(7), SO_TIMESTAMPNS).
func timestamp(controls []byte) (time.Time, error) {
	all, err := unix.ParseSocketControlMessage(controls)
	if err != nil {
		return time.Time{}, err
	}
	for _, c := range all {
		if c.Header.Level == unix.SOL_SOCKET && c.Header.Type == unix.SO_TIMESTAMPNS && len(c.Data) == 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(c.Data)), int64(binary.NativeEndian.Uint64(c.Data[8:]))), nil
		}
	}
	return time.Time{}, errors.New("a frame came without the kernel's time")
}

// OpenPorts lists the TCP ports of an address that accept a connection.
func (n *Neighbour) OpenPorts(address string, timeout time.Duration) ([]int, error) {
	const scanners = 64
	var (
		mu   sync.Mutex
		open []int
		scan errgroup.Group
	)
	for first := 1; first <= scanners; first++ {
		scan.Go(func() error {
			return n.within(func() error { // one thread enters the namespace for many ports
				for port := first; port <= 65535; port += scanners {
					if conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, fmt.Sprint(port)), timeout); err == nil {
						conn.Close()
						mu.Lock()
						open = append(open, port)
						mu.Unlock()
					}
				}
				return nil
			})
		})
	}
	return open, scan.Wait()
}
