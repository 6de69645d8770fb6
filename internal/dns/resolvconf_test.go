package dns

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
)

// At some sites the nodes' resolver is the VLAN's DNS server: the daemon on such a node must not query itself.
func TestTheNodesResolverIsNotAskedWhereItIsThisServer(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "resolv.conf")
	d := &Daemon{Flags: &daemon.Flags{PodIP: netip.MustParseAddr("10.128.0.7")}, resolvConf: path}
	asked := func(resolvers string) ([]netip.AddrPort, error) {
		g.Expect(os.WriteFile(path, []byte(resolvers), 0o600)).To(Succeed())
		return d.othersOfNode(object("192.0.2.1"))
	}
	g.Expect(asked("nameserver 127.0.0.1\nnameserver 10.128.0.7\nnameserver 192.0.2.53\n")).To(ConsistOf(netip.MustParseAddrPort("192.0.2.53:53")))
	_, err := asked("nameserver 127.0.0.1\n")
	g.Expect(err).To(MatchError(And(ContainSubstring("127.0.0.1, is this server itself"), ContainSubstring("set spec.upstreamDNS"))))
	g.Expect(asked("search example.com\n")).To(BeEmpty(), "a node without resolvers has no others to ask")
}
