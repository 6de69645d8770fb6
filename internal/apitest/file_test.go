package apitest

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dns"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// fromFile is how each daemon reads its object from a file, on a machine that has all addresses of the examples.
var fromFile = map[string]func(object map[string]any) error{
	"DHCPServer": func(fields map[string]any) error {
		var server v1alpha1.DHCPServer
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &server, true); err != nil {
			return err
		}
		_, err := dhcp.ConfigOf(&server, 0)
		return err
	},
	"DNSServer": func(fields map[string]any) error {
		var server v1alpha1.DNSServer
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &server, true); err != nil {
			return err
		}
		_, err := dns.IntentOf(&server, nil)
		return err
	},
	"ProxyServer": func(fields map[string]any) error {
		var server v1alpha1.ProxyServer
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &server, true); err != nil {
			return err
		}
		here := intent.Place{Devices: map[netip.Addr]string{netip.MustParseAddr("192.168.100.4"): "net1"}}
		_, findings := intent.Of(server.Spec, here, func(intent.Service) []netip.AddrPort { return nil })
		return intent.Sentence(findings)
	},
}

// onlyInACluster are rules on what a file has no use for: a name that pods get, a card of a pod, an object that was another before.
var onlyInACluster = []string{"the name may have at most", "the protocol of a port in use cannot change",
	"must be an Ethernet address", "no network card can have this address"}

// What the schema refuses of an object, a daemon refuses of a file; what it takes, the daemon takes.
func TestAFileIsJudgedAsTheSchemaJudges(t *testing.T) {
	base := read[map[string]map[string]any](t, "testdata/base.yaml")
	for _, r := range read[[]rule](t, "testdata/rules.yaml") {
		judge := fromFile[r.Kind]
		inACluster := slices.ContainsFunc(onlyInACluster, func(says string) bool { return strings.Contains(r.Says, says) })
		if judge == nil || inACluster {
			continue
		}
		t.Run(r.Kind+"/"+strings.ReplaceAll(r.Says, "/", "∕"), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(judge(merged(base[r.Kind], r.Accepted))).To(Succeed())
			g.Expect(judge(merged(base[r.Kind], r.Rejected))).NotTo(Succeed())
		})
	}
}
