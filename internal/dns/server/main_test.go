package server

import (
	"testing"

	"go.uber.org/goleak"
)

// CoreDNS' goroutines of a retired upstream end by themselves: a health check after its next attempt, the connection manager when the garbage
// collector finalizes it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/coredns/coredns/plugin/pkg/up.(*Probe).Do.func1"),
		goleak.IgnoreAnyFunction("github.com/coredns/coredns/plugin/pkg/proxy.(*Transport).connManager"))
}
