package render_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/render"
)

const twoServers = `
apiVersion: v1
kind: List
items:
- apiVersion: hostedcluster.densityops.com/v1alpha1
  kind: DNSServer
  metadata: {namespace: clusters, name: c1-dns}
  spec:
    hostedClusterDomain: c1.example.com
    internalEntries:
    - {hostname: api.c1.example.com, ip: 172.30.0.9}
    - {hostname: "*.web.example.com", ip: 172.30.0.9}
    - {hostname: kube.web.example.com, ip: 172.30.0.9}
  status: {serviceClusterIP: 172.30.0.7}
- apiVersion: hostedcluster.densityops.com/v1alpha1
  kind: DNSServer
  metadata: {namespace: clusters, name: c2-dns}
  spec: {hostedClusterDomain: c2.example.com}
  status: {serviceClusterIP: 172.30.0.8}
`

const present = `
---
apiVersion: operator.openshift.io/v1
kind: DNS
metadata: {name: default}
spec:
  nodePlacement: {}
  servers:
  - {name: corp, zones: [corp.example.com], forwardPlugin: {upstreams: [10.0.0.53], newer: kept}}
  - {name: oooi-gone, zones: [c0.example.com], forwardPlugin: {upstreams: [172.30.0.1]}}
---
apiVersion: config.openshift.io/v1
kind: DNS
metadata: {name: cluster}
`

func objects(t *testing.T, text string) render.Objects {
	t.Helper()
	all, err := render.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestForwardingKeepsTheServersThatAreThere(t *testing.T) {
	g := NewWithT(t)
	f, err := objects(t, twoServers+present).OpenShiftDNS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Notes).To(BeEmpty())
	g.Expect(string(f.Patch)).To(MatchYAML(`
apiVersion: operator.openshift.io/v1
kind: DNS
metadata: {name: default}
spec:
  servers:
  - {name: corp, zones: [corp.example.com], forwardPlugin: {upstreams: [10.0.0.53], newer: kept}}
  - {name: oooi-132f9910d8, zones: [c1.example.com, web.example.com], forwardPlugin: {upstreams: [172.30.0.7]}}
  - {name: oooi-163f3337a7, zones: [c2.example.com], forwardPlugin: {upstreams: [172.30.0.8]}}
`))
}

func TestForwardingSaysWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	_, err := objects(t, twoServers).OpenShiftDNS()
	g.Expect(err).To(MatchError(ContainSubstring("add what `kubectl get dns.operator.openshift.io default -o yaml` prints")), "a merge patch replaces the servers that nobody showed us")
	_, err = objects(t, strings.ReplaceAll(present, "oooi-gone", "theirs")).OpenShiftDNS()
	g.Expect(err).To(MatchError(ContainSubstring("the files hold no DNSServer")))
}

// A DNSServer without an address does not hold up others, and keeps the entry that it had.
func TestADNSServerWithoutAnAddressStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	waiting := strings.ReplaceAll(twoServers, "172.30.0.8", "")
	for server, left := range map[string]string{"oooi-gone": "172.30.0.7", "oooi-163f3337a7": "172.30.0.1"} {
		f, err := objects(t, waiting+strings.ReplaceAll(present, "oooi-gone", server)).OpenShiftDNS()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.Notes).To(ConsistOf(ContainSubstring("clusters/c2-dns has no status.serviceClusterIP yet")))
		g.Expect(string(f.Patch)).To(And(ContainSubstring("corp.example.com"), ContainSubstring("172.30.0.7"), ContainSubstring(left), Not(ContainSubstring(`""`))))
	}
	_, err := objects(t, strings.ReplaceAll(waiting, "172.30.0.7", "")+present).OpenShiftDNS()
	g.Expect(err).To(MatchError(And(ContainSubstring("c1-dns has no"), ContainSubstring("c2-dns has no"))))
}

func TestTheLastDNSServersForwardingIsTakenBack(t *testing.T) {
	g := NewWithT(t)
	forwarding, err := objects(t, present).OpenShiftDNS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(forwarding.Notes).To(ConsistOf(ContainSubstring("nothing is forwarded to us any more")))
	g.Expect(string(forwarding.Patch)).To(And(ContainSubstring("name: corp"), Not(ContainSubstring("oooi-gone"))))
}

func TestForwardingRefusesAZone(t *testing.T) {
	denying := func(zone string) string {
		return strings.Replace(twoServers, "hostedClusterDomain: c1.example.com", "hostedClusterDomain: c1.example.com\n    deniedZones: ["+zone+"]", 1)
	}
	for name, c := range map[string]struct{ text, says string }{
		"of two DNSServers":         {strings.ReplaceAll(twoServers, "c2.example.com", "web.example.com"), "zone web.example.com is of both DNSServer clusters/c1-dns and DNSServer clusters/c2-dns"},
		"of a server that is there": {strings.ReplaceAll(twoServers, "c2.example.com", "corp.example.com") + present, "zone corp.example.com is of both server corp of dns.operator.openshift.io/default and DNSServer clusters/c2-dns"},
		"above the cluster's own":   {strings.ReplaceAll(twoServers, "c2.example.com", "local"), "zone local of DNSServer clusters/c2-dns holds or lies in cluster.local"},
		"of the cluster's own":      {strings.ReplaceAll(twoServers, "c2.example.com", "c2.cluster.local"), "zone c2.cluster.local of DNSServer clusters/c2-dns holds or lies in cluster.local"},
		"that is denied":            {denying("c1.example.com"), "zone c1.example.com of DNSServer clusters/c1-dns holds or lies in c1.example.com"},
		"that holds one that is":    {denying("infra.c1.example.com"), "zone c1.example.com of DNSServer clusters/c1-dns holds or lies in infra.c1.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.text, present) {
				c.text += present
			}
			_, err := objects(t, c.text).OpenShiftDNS()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
