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
	g.Expect(f.Blind).To(BeFalse())
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
	f, err := objects(t, twoServers).OpenShiftDNS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Blind).To(BeTrue(), "a merge patch replaces the servers that nobody showed us")
	_, err = objects(t, present).OpenShiftDNS()
	g.Expect(err).To(MatchError(ContainSubstring("no DNSServer")))
	_, err = objects(t, strings.ReplaceAll(twoServers, "172.30.0.8", "")).OpenShiftDNS()
	g.Expect(err).To(MatchError(ContainSubstring("clusters/c2-dns has no status.serviceClusterIP yet")))
}
