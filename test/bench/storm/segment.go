package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// segment is a network of two hosts: the server's, and one whose card speaks for all machines.
type segment struct{ server, machines, dir string }

// The addresses are documented as free for benchmarks (RFC 2544).
const (
	device, subnet, serverIP = "net1", "198.18.0.0/16", "198.18.0.2"
	first, last              = "198.18.0.3", "198.18.255.254"
)

var serverCard = net.HardwareAddr{2, 0x18, 0xff, 0xff, 0xff, 0xff}

func newSegment() (s *segment, err error) {
	id := fmt.Sprintf("storm%d", os.Getpid())
	s = &segment{server: id + "s", machines: id + "m"}
	if s.dir, err = os.MkdirTemp("", "storm-"); err != nil {
		return nil, err
	}
	err = ip(
		"netns add "+s.server,
		"netns add "+s.machines,
		"-n "+s.server+" link set lo up",
		"-n "+s.server+" link add "+device+" address "+serverCard.String()+" type veth peer name "+device+" netns "+s.machines,
		"-n "+s.server+" address add "+serverIP+"/16 dev "+device,
		"-n "+s.server+" link set "+device+" up",
		"-n "+s.machines+" link set "+device+" up",
	)
	if err != nil {
		s.remove()
	}
	return s, err
}

// ip runs lines of ip(8).
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil { //nolint:gosec // all of it is ours
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

// knows spares the server a question for a machine's card (ARP), which no kernel answers here.
func (s *segment) knows(m *machine) error {
	return ip(fmt.Sprintf("-n %s neighbour add %s lladdr %s dev %s nud permanent", s.server, m.address, m.hardware, device))
}

func (s *segment) remove() {
	for _, host := range []string{s.server, s.machines} {
		_ = exec.Command("ip", "netns", "del", host).Run() //nolint:gosec // all of it is ours; it may not be there yet
	}
	_ = os.RemoveAll(s.dir)
}

// onServer is a command on the server's host, to be started.
func (s *segment) onServer(command ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", s.server}, command...)...) //nolint:gosec // all of it is ours
}

// packets is a socket that sends and receives whole frames on the machines' card.
func (s *segment) packets() (int, error) {
	const every = 0x0300 // ETH_P_ALL in the network's byte order
	type opened struct {
		socket int
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread, which stays in the namespace, ends with the goroutine
		host, err := netns.GetFromName(s.machines)
		if err == nil {
			defer func() { _ = host.Close() }()
			err = netns.Set(host)
		}
		if err != nil {
			done <- opened{0, err}
			return
		}
		card, err := net.InterfaceByName(device)
		if err != nil {
			done <- opened{0, err}
			return
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, every)
		done <- opened{socket, errors.Join(err, unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: every, Ifindex: card.Index}),
			unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}))}
	}()
	o := <-done
	return o.socket, o.err
}
