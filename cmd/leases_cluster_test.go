package cmd

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// leaseWords make what the pods of a DHCPServer write: dropped does what both instances do with a lease that is released.
const leaseWords = `
dhcpserver() { echo "{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: DHCPServer, metadata: {name: $2, namespace: $1}, spec: {
  networkConfig: {cidr: 192.168.100.0/24, serverIP: 192.168.100.2, additionalServerIPs: [192.168.100.5], networkAttachmentDefinition: v},
  leaseConfig: {rangeStart: 192.168.100.10, rangeEnd: 192.168.100.99, leaseTime: 1h}}}
---"; }
lease() { echo "{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: DHCPLease, metadata: {name: c1-dhcp-192.168.100.$1, namespace: clusters}, spec: {
  ip: 192.168.100.$1, mac: '52:54:00:00:00:$1', hostname: $2, serverRef: {name: c1-dhcp}, state: Bound, lastTransitionTime: '2026-11-24T12:00:00Z',
  expirationTime: '$UNTIL', durableUntilTime: '${UNTIL%Z}.000000Z'${3-}}}
---"; }
dropped() {
  kubectl wait olease c1-dhcp-$1 -n clusters --for=jsonpath={.spec.state}=Released --timeout=60s
  kubectl patch olease c1-dhcp-$1 -n clusters --type merge -p '{"spec": {"dropped": ["192.168.100.2", "192.168.100.5"]}}'
}
code() { "$@" >out 2>err || echo "exit $?"; cat out err; }
`

// leasedBefore are the leases of a DHCPServer: worker-1 is no virtual machine, worker-2 is one, and worker-3 was one that is gone. In namespace
// elsewhere nothing is leased.
const leasedBefore = leaseWords + `
for namespace in clusters elsewhere none; do kubectl create namespace $namespace; done
kubectl apply -f - <<E
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachines.kubevirt.io}
spec:
  {group: kubevirt.io, scope: Namespaced, names: {kind: VirtualMachine, plural: virtualmachines}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
E
kubectl wait --for=condition=Established crd/virtualmachines.kubevirt.io --timeout=60s
{
  dhcpserver clusters c1-dhcp
  dhcpserver elsewhere c2-dhcp
  lease 20 worker-1
  lease 21 worker-2 ", vmRef: {namespace: clusters, name: worker-2, uid: '2'}"
  lease 22 worker-3 ", vmRef: {namespace: clusters, name: worker-3, uid: '3'}"
  echo '{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: worker-2, namespace: clusters}}'
} | kubectl apply -f -
`

// The page's commands run in order on the leases of a DHCPServer. What dnsmasq's file has is at another place than the page says.
func TestLeasesOfADHCPServerAreShownReleasedAndCarriedElsewhere(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	ends := time.Now().Add(2 * time.Hour).Truncate(time.Second).UTC()
	until := "UNTIL=" + ends.Format(time.RFC3339) + "\n"
	s.runs(until + leasedBefore)
	said := map[string]string{}
	for _, b := range blocks(pages(t)["docs/STATIC_IPAM.md"]) {
		for _, line := range b.commands() {
			before := ""
			switch {
			case strings.Contains(line, " release "):
				before = leaseWords + "dropped 192.168.100.20 >/dev/null & trap wait EXIT\n"
				line += " || " + line // kubectl may be slower than it waits
			case strings.Contains(line, "/var/lib/misc/"):
				line = strings.Replace(line, "/var/lib/misc/", "./", 1)
				before = `echo "$(date -d 2hours +%s) 52:54:00:00:00:31 192.168.100.31 worker-4 *" > dnsmasq.leases` + "\n"
			}
			if strings.HasPrefix(line, "oooi leases ") {
				said[strings.Fields(line)[2]] += s.runs(before + line)
			}
		}
	}
	card := `Address:             192.168.100.20
DHCPServer:          c1-dhcp
Hardware address:    52:54:00:00:00:20
Host name:           worker-1
State:               Bound
Told to the client:  until ` + ends.Format(time.RFC3339) + `
Another client:      after ` + ends.Add(10*time.Minute).Format(time.RFC3339) + "\n"
	s.Expect(said["list"]).To(MatchRegexp(`(?s)^IP .*192.168.100.20  52:54:00:00:00:20  worker-1  -         Bound  in 1\d\dm  c1-dhcp\n.*192.168.100.21 .* worker-2  Bound `))
	s.Expect(said["show"]).To(Equal(card))
	s.Expect(said["who"]).To(And(ContainSubstring("worker-1"), ContainSubstring("it has it still")))
	s.Expect(said["history"]).To(MatchRegexp(`192.168.100.20 .* 52:54:00:00:00:20  worker-1 `))
	s.Expect(said["release"]).To(And(HavePrefix("192.168.100.20 of 52:54:00:00:00:20 is released\n"), ContainSubstring("192.168.100.20 is free; ")))
	s.Expect(said["import"]).To(Equal("0 leases taken over, 2 are there already, 1 have ended\n1 leases would be taken over, 0 are there already, 0 have ended\n"))

	for command, says := range map[string]string{
		"oooi leases release 192.168.100.21 -n clusters": "exit 1\n192.168.100.21 is leased to VirtualMachine clusters/worker-2, which exists and would get it again",
		"oooi leases list -n none":                       "exit 2\nnamespace none has no DHCPServer: give the namespace of the Infra with -n",
		"oooi leases list -n clusters --server c3-dhcp":  "exit 2\nnamespace clusters has no DHCPServer c3-dhcp: list them with kubectl get dhcpserver -n clusters",
		"oooi leases list -n elsewhere":                  "no leases\n",
	} {
		s.Expect(s.runs(leaseWords+"code "+command)).To(HavePrefix(says), command)
	}
	s.runs(leaseWords + "dropped 192.168.100.22 >/dev/null & trap wait EXIT; oooi leases release 192.168.100.22 -n clusters || oooi leases release 192.168.100.22 -n clusters")
	s.Expect(s.runs("oooi leases history worker-3 -n clusters")).To(MatchRegexp(`worker-3 .*Released`))

	s.Expect(s.runs("oooi leases import leases.jsonl --from oooi -n elsewhere --server c2-dhcp")).To(Equal("2 leases taken over, 0 are there already, 1 have ended\n"))
	s.Expect(s.runs("oooi leases show worker-2 -n elsewhere; kubectl get olease -n elsewhere c2-dhcp-192.168.100.21")).To(And(ContainSubstring("DHCPServer:          c2-dhcp\n"), Not(ContainSubstring("Virtual machine"))))
}
