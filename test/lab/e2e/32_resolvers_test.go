//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The node's resolver knows no name and says so, which is an answer; where the Infra names one that is nowhere, each instance says that.
func TestResolversThatAreSilentAreTold(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	ready(t, ctx)
	kinds := []string{"ResolversAnswer", "ResolversAnswer1"}
	each := func(status, reason, says string) {
		t.Helper()
		for _, kind := range kinds {
			awaitMessage(t, ctx, "clusters", "dnsserver/c1-dns", kind, status, reason, says)
		}
	}
	n := neighbour(t, ctx, "asks", "br100", "192.168.100.242/24")
	forwarded := func(want string) {
		t.Helper()
		for _, server := range addressesOf(t, ctx, "c1", "dns") {
			out, err := n.Run(ctx, "dig", "+tries=1", "+time=8", "@"+server, "registry.example.net")
			must(t, err)
			if !strings.Contains(out, "status: "+want) {
				t.Errorf("%s says of a name that is not ours:\n%s\nwant %s", server, out, want)
			}
		}
	}
	each("True", "ResolversAnswer", "")
	forwarded("REFUSED")
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"networkConfig":{"dnsServers":null}}}`)
		return err
	})
	patched(t, ctx, `{"networkConfig":{"dnsServers":["192.168.100.79"]}}`)()
	each("False", "ResolversSilent", "192.168.100.79 (")
	forwarded("SERVFAIL")
	ready(t, ctx)
	patched(t, ctx, `{"networkConfig":{"dnsServers":null}}`)()
	each("True", "ResolversAnswer", "")
	forwarded("REFUSED")
}
