package names

import (
	"strings"
	"testing"
)

func TestTheLongestInfraHasPods(t *testing.T) {
	infra := strings.Repeat("a", 40)
	for _, child := range []string{DHCPServer(infra), DNSServer(infra), DHCPServer(infra[:36]), DHCPServer(infra[:37])} {
		if revision := Workload(child) + "-1234567890"; len(revision) > 63 {
			t.Errorf("%s: the label controller-revision-hash would have %d characters, at most 63 may be", child, len(revision))
		}
	}
	if got := Workload("c1-dhcp"); got != "c1-dhcp-deployment" {
		t.Errorf("the workload of c1-dhcp is %s, want the seed's c1-dhcp-deployment", got)
	}
}

func TestWhatIsThereForAChildIsKnownByItsName(t *testing.T) {
	for object, want := range map[string]bool{
		"c1-proxy":                          true,
		"oooi.clusters.c1-proxy":            true,
		"oooi.clusters.c1-proxy.ignition":   true,
		"c1-dhcp":                           false,
		"c1-proxy-2":                        false,
		"oooi.clusters.c1-proxy-2.ignition": false,
		"oooi.elsewhere.c1-proxy.ignition":  false,
		"oooi.clusters.c1-dns":              false,
	} {
		if got := OfChild(object, "clusters", "c1-proxy"); got != want {
			t.Errorf("%s is there for c1-proxy: %v, want %v", object, got, want)
		}
	}
}
