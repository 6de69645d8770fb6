package server

import (
	"testing"

	"go.uber.org/goleak"
)

// What CoreDNS leaves of a retired upstream ends by itself: a health check after its next attempt, the keeper of sockets
// when the garbage collector finalizes it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/coredns/coredns/plugin/pkg/up.(*Probe).Do.func1"),
		goleak.IgnoreAnyFunction("github.com/coredns/coredns/plugin/pkg/proxy.(*Transport).connManager"))
}
