package preflight_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/preflight"
)

// Two instances lease from one pool, and no key of a JSON object comes twice.
func TestThePoolOfTwoInstancesIsToldOnce(t *testing.T) {
	text, err := json.Marshal(preflight.Serves{Leases: "192.168.100.10 - 192.168.100.20", Addresses: []v1alpha1.AssignedAddress{
		{Component: "dhcp", IP: "192.168.100.2"}, {Component: "dhcp", Instance: 1, IP: "192.168.100.3"},
	}})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(ContainSubstring(`"dhcp-1":"192.168.100.3"`))
	g.Expect(strings.Count(string(text), `"leases"`)).To(Equal(1))
}
