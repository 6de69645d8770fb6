package input

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
)

func TestWhatWasGivenIsRememberedOfThisInfraAlone(t *testing.T) {
	const c1 = `{"of":"clusters/c1","addresses":{"dns":"192.168.100.8","proxy":"192.168.100.9"},"pool":["192.168.100.20","192.168.100.40"]}`
	dhcp := &v1alpha1.DHCPServer{}
	dhcp.Spec.NetworkConfig.ServerIP, dhcp.Spec.LeaseConfig.RangeStart, dhcp.Spec.LeaseConfig.RangeEnd = "192.168.100.2", "192.168.100.100", "192.168.100.200"
	dns := &v1alpha1.DNSServer{}
	dns.Spec.NetworkConfig.ServerIP = "192.168.100.3"
	status := []v1alpha1.AssignedAddress{{Component: "proxy", IP: "192.168.100.4"}}
	remembered := ipam.Range{First: netip.MustParseAddr("192.168.100.20"), Last: netip.MustParseAddr("192.168.100.40")}
	for name, c := range map[string]struct {
		text     string
		cidr     v1alpha1.Subnet
		children Children
		want     map[component.Name]netip.Addr
		pool     ipam.Range
	}{
		"it wins over status":                 {c1, "192.168.100.0/24", Children{}, addresses("", "192.168.100.8", "192.168.100.9"), remembered},
		"children win over it":                {c1, "192.168.100.0/24", Children{component.DHCP: dhcp, component.DNS: dns}, addresses("192.168.100.2", "192.168.100.3", "192.168.100.9"), Span(dhcp.Spec.LeaseConfig.RangeStart, dhcp.Spec.LeaseConfig.RangeEnd)},
		"there is none":                       {"", "192.168.100.0/24", Children{}, addresses("", "", "192.168.100.4"), ipam.Range{}},
		"it was copied from another Infra":    {`{"of":"clusters/c2","addresses":{"proxy":"192.168.100.9"}}`, "192.168.100.0/24", Children{}, addresses("", "", "192.168.100.4"), ipam.Range{}},
		"it is of another network":            {c1, "10.0.0.0/24", Children{}, addresses("", "", "192.168.100.4"), ipam.Range{}},
		"somebody wrote something else there": {`{"of":"clusters/c1","addresses":{"proxy":"nowhere"}}`, "192.168.100.0/24", Children{}, addresses("", "", "192.168.100.4"), ipam.Range{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", Annotations: map[string]string{names.AnnotationGiven: c.text}}}
			infra.Spec.NetworkConfig.CIDR, infra.Status.Addresses = c.cidr, status
			g.Expect(Given(infra, c.children)).To(Equal(c.want))
			g.Expect(GivenPool(infra, c.children)).To(Equal(c.pool))
		})
	}
}

// addresses are those of an Infra whose spec has these three.
func addresses(dhcp, dns, proxy v1alpha1.IPAddress) map[component.Name]netip.Addr {
	var of v1alpha1.InfraSpec
	c := &of.InfraComponents
	c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP = v1alpha1.IPv4Address(dhcp), dns, proxy
	return Written(&v1alpha1.Infra{Spec: of})
}
