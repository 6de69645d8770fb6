// Package segment makes a network of hosts, each in a network namespace of its own.
package segment

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

// Segment is a network, and a directory for what its hosts write.
type Segment struct {
	Dir string

	id    string
	hosts []string
}

// New makes hosts, and joins them by these lines for ip(8), in which HOST: is the namespace of a host.
func New(name string, hosts []string, lines ...string) (s *Segment, err error) {
	s = &Segment{id: fmt.Sprintf("%s%d", name, os.Getpid()), hosts: hosts}
	if s.Dir, err = os.MkdirTemp("", name+"-"); err != nil {
		return nil, err
	}
	var all, names []string
	for _, host := range hosts {
		all = append(all, "netns add "+host+":", "-n "+host+": link set lo up")
		names = append(names, host+":", s.namespace(host))
	}
	for _, line := range append(all, lines...) {
		line = strings.NewReplacer(names...).Replace(line)
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil { //nolint:gosec // all of it is ours
			s.Remove()
			return nil, fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return s, nil
}

func (s *Segment) namespace(host string) string { return s.id + host }

// Remove the hosts and the directory.
func (s *Segment) Remove() {
	for _, host := range s.hosts {
		_ = exec.Command("ip", "netns", "del", s.namespace(host)).Run() //nolint:gosec // all of it is ours; it may not be there yet
	}
	_ = os.RemoveAll(s.Dir)
}

// On a host, a command to be started.
func (s *Segment) On(host string, command ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", s.namespace(host)}, command...)...) //nolint:gosec // all of it is ours
}

// Enter runs a function on a host; sockets that it opens stay there.
func (s *Segment) Enter(host string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread, which stays in the namespace, ends with the goroutine
		handle, err := netns.GetFromName(s.namespace(host))
		if err == nil {
			defer func() { _ = handle.Close() }()
			err = netns.Set(handle)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// Packets is a socket that sends and receives whole frames on a host's card.
func (s *Segment) Packets(host, device string) (socket int, err error) {
	err = s.Enter(host, func() (err error) {
		socket, err = Packets(device)
		return err
	})
	return socket, err
}

// Packets is a socket that sends and receives whole frames on a card of the host that this process runs on.
func Packets(device string) (int, error) {
	const every = 0x0300 // ETH_P_ALL in the network's byte order
	card, err := net.InterfaceByName(device)
	if err != nil {
		return 0, err
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, every)
	return socket, errors.Join(err, unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: every, Ifindex: card.Index}),
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}))
}
