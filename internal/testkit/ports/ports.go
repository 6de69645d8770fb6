// Package ports gives a test ports of its own.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
)

// These are below the ephemeral ports (net.ipv4.ip_local_port_range, 32768 to 60999), of which another socket of the same test may get any
// that is free now.
const first, last = 10000, 29999

var given sync.Map // ports that this process was given, even if nobody listens there yet

// Free is a port that nobody listens on, neither at 127.0.0.1 nor at ::1, by TCP nor by UDP.
func Free(t *testing.T) uint16 {
	t.Helper()
	for range 1000 {
		port := uint16(first + rand.IntN(last-first+1)) //nolint:gosec // it guards nothing
		if _, before := given.LoadOrStore(port, true); !before && free(port) {
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free", first, last)
	return 0
}

func free(port uint16) bool {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		at := fmt.Sprintf("%s:%d", host, port)
		tcp, err := net.Listen("tcp", at)
		if errors.Is(err, syscall.EADDRINUSE) {
			return false
		} else if err == nil { // a machine may have no IPv6
			_ = tcp.Close()
		}
		udp, err := net.ListenPacket("udp", at)
		if errors.Is(err, syscall.EADDRINUSE) {
			return false
		} else if err == nil {
			_ = udp.Close()
		}
	}
	return true
}
