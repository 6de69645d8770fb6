package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTheLongestInfraHasPods(t *testing.T) {
	infra := strings.Repeat("a", 40)
	for component, child := range map[string]string{DHCP: DHCPServer(infra), DNS: DNSServer(infra)} {
		for cut := range 20 {
			if revision := Workload(component, child[cut:]) + "-1234567890"; len(revision) > 63 {
				t.Errorf("%s: the label controller-revision-hash would have %d characters, at most 63 may be", child[cut:], len(revision))
			}
		}
		longest := strings.Repeat("a", 47) // the longest that api/v1alpha1 allows
		if revision := Workload(component, longest) + "-1234567890"; len(revision) > 63 {
			t.Errorf("%s: the label controller-revision-hash would have %d characters, at most 63 may be", longest, len(revision))
		}
	}
}

func TestChildrenOfOneNameShareNothing(t *testing.T) {
	taken := map[string]string{}
	for _, component := range []string{DHCP, DNS, Proxy} {
		for kind, name := range map[string]string{"Role": Own(component, "edge"), "workload": Workload(component, "edge"), "Service": Service(component, "edge")} {
			if other := taken[kind+name]; other != "" {
				t.Errorf("%s and %s named edge share the %s %s", other, component, kind, name)
			}
			taken[kind+name] = component
		}
	}
}

func TestTheSeedsNamesStay(t *testing.T) {
	for got, want := range map[string]string{
		Own(DHCP, DHCPServer("c1")): "c1-dhcp", Own(Proxy, ProxyServer("c1")): "c1-proxy",
		Workload(DHCP, "c1-dhcp"): "c1-dhcp-deployment", Service(DNS, "c1-dns"): "c1-dns-svc",
		Workload(Proxy, "edge"): "edge-deployment", Service(Proxy, "edge"): "edge-svc",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhatIsThereForAChildIsKnownByItsName(t *testing.T) {
	for object, want := range map[string]bool{
		"c1-proxy":                          true,
		"oooi.clusters.c1-proxy":            true,
		"oooi.clusters.c1-proxy.ignition":   true,
		"c1-dhcp":                           false,
		"c1-proxy-1":                        true, // the second instance's network
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

func TestTheServiceOfAppsHasANameThatServicesMayHave(t *testing.T) {
	for cluster, want := range map[string]string{
		"c1": "c1-apps", "c1.prod": "c1-prod-apps", "5g": "c5g-apps",
		strings.Repeat("a", 58): strings.Repeat("a", 58) + "-apps", strings.Repeat("a", 59): strings.Repeat("a", 58) + "-apps",
		strings.Repeat("a", 57) + ".b": strings.Repeat("a", 57) + "-apps",
	} {
		got := Apps(cluster)
		if wrong := validation.IsDNS1035Label(got); got != want || len(wrong) > 0 {
			t.Errorf("%s: %s, want %s %v", cluster, got, want, wrong)
		}
	}
}
