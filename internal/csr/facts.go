package csr

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/unroutable"
)

const (
	// activeFor is how long after its Lease's last renewal a Node counts as alive (operator-rules.md#csr-bootstrap; a kubelet renews every
	// 10 s).
	activeFor = 5 * time.Minute
	// onceIn is how long after one approval a DPU gets no other.
	onceIn = 15 * time.Minute
	// clocksApart is how far the hosted API server's clock may be ahead of the management API's; HyperShift runs both on nodes of one
	// cluster. No DPU has to wait for it: its first CSR comes minutes after it was made, once its OS is installed.
	clocksApart = 5 * time.Second
)

// question is a request together with the facts about its host.
type question struct {
	Asked
	Facts
	dpu    DPU // the one of this DPUCluster with the host's name, if any
	ours   int // how many DPUs of this DPUCluster the name may mean
	node   Node
	joined bool // the Node exists
	last   Approval
	again  time.Time
}

func questionOf(a Asked, f Facts) *question {
	q := &question{Asked: a, Facts: f}
	var ours []DPU
	for _, d := range f.DPUs {
		switch {
		case d.Name != a.Host:
		case d.Cluster == f.Cluster:
			ours = append(ours, d)
		default:
			q.dpu = d
		}
	}
	ours = installedFirst(ours)
	if q.ours = len(ours); q.ours > 0 {
		q.dpu = ours[0]
	}
	q.node, q.joined = f.Nodes[a.Host]
	for _, p := range f.Approved[a.Host] {
		if p.Name != a.Name && (p.DPU == q.dpu.UID || p.DPU == "") && !p.At.Before(q.last.At) {
			q.last = p
		}
	}
	return q
}

// installedFirst: of several DPUs of one name, only those with an installed OS can be asking. DPF takes DPUs from any namespace (its
// allocator), so otherwise anyone who may create one could block a host; only DPF writes in their status what is installed.
func installedFirst(all []DPU) []DPU {
	if some := slices.DeleteFunc(slices.Clone(all), func(d DPU) bool { return !d.OSInstalled }); len(some) > 0 {
		return some
	}
	return all
}

// factRules apply to requests of both kinds.
var factRules = []rule[*question]{
	{"DPUOfThisCluster", (*question).isOfThisCluster},
}

var bootstrapFacts = []rule[*question]{
	{"DPUStays", (*question).stays},
	{"OSInstalled", (*question).isInstalled},
	{"AskedInItsLife", (*question).isOfThisLife},
	{"NodeInactive", (*question).isInactive},
	{RuleRebootstrap, (*question).mayBootstrapAgain},
	{"OneKey", (*question).hasTheOnlyKey},
	{"OneInFifteenMinutes", (*question).isAlone},
	{"Newest", (*question).isNewest},
}

var servingFacts = []rule[*question]{
	{"NodeExists", (*question).hasJoined},
	{"AddressesOfItsNode", (*question).hasOwnAddresses},
	{"AddressesOfNoOtherNode", (*question).takesFromNoNode},
	{"AddressesOfNoOtherDPU", (*question).takesFromNoDPU},
	{"AddressesOfNoService", (*question).takesFromNoService},
	{"AddressesOfNoAPI", (*question).takesFromNoAPI},
	{"AddressesElsewhere", (*question).isElsewhere},
}

func (q *question) isOfThisCluster() (bool, string) {
	switch {
	case q.dpu.Name == "":
		return false, fmt.Sprintf("no DPU has the name %s", short(q.Host))
	case q.ours == 0:
		return false, fmt.Sprintf("DPU %s is of DPUCluster %s, not of %s", q.dpu, q.dpu.Cluster, q.Cluster)
	case q.ours > 1:
		return false, fmt.Sprintf("%d DPUs of DPUCluster %s have the name %s: nobody can tell which of them asks", q.ours, q.Cluster, short(q.Host))
	}
	return true, fmt.Sprintf("DPU %s is of DPUCluster %s", q.dpu, q.Cluster)
}

func (q *question) stays() (bool, string) {
	return !q.dpu.Deleting, fmt.Sprintf("DPU %s: deleting=%t", q.dpu, q.dpu.Deleting)
}

func (q *question) isInstalled() (bool, string) {
	return q.dpu.OSInstalled, fmt.Sprintf("DPU %s: condition OSInstalled=%t", q.dpu, q.dpu.OSInstalled)
}

// isOfThisLife: a CSR older than the DPU was made for an earlier DPU of the same name. Both times are whole seconds, of two clocks.
func (q *question) isOfThisLife() (bool, string) {
	from := q.aliveSince()
	return q.Created.After(from), fmt.Sprintf("the CSR is of %s, DPU %s of %s; as clocks may be %s apart, its own are of after %s",
		stamp(q.Created), q.dpu, stamp(q.dpu.Created), clocksApart, stamp(from))
}

// aliveSince is the earliest creation time of a CSR that the DPU itself can have made.
func (q *question) aliveSince() time.Time { return q.dpu.Created.Add(clocksApart) }

// isInactive: a DPU that has joined does not join again; a CSR in its name may be somebody else's.
func (q *question) isInactive() (bool, string) {
	renewed, leased := q.Leases[q.Host]
	alive := leased && q.Now.Sub(renewed) < activeFor
	switch {
	case !q.joined:
		return true, fmt.Sprintf("there is no Node %s", short(q.Host))
	case q.node.Ready:
		return false, fmt.Sprintf("Node %s is Ready: it has joined", short(q.Host))
	case alive:
		q.wait(renewed.Add(activeFor))
		return false, fmt.Sprintf("Node %s is not Ready, but its kubelet renewed its Lease at %s, less than %s ago", short(q.Host), stamp(renewed), activeFor)
	}
	return true, fmt.Sprintf("Node %s is not Ready, and its Lease was not renewed for %s", short(q.Host), activeFor)
}

// RuleRebootstrap is broken by a host whose Node exists, where such hosts may not bootstrap again.
const RuleRebootstrap = "Rebootstrap"

func (q *question) mayBootstrapAgain() (bool, string) {
	switch {
	case !q.joined:
		return true, fmt.Sprintf("there is no Node %s", short(q.Host))
	case q.NoRebootstrap:
		return false, fmt.Sprintf("Node %s exists, and the bridge has rebootstrap: Never; if the DPU is to join again, delete that Node in the hosted cluster", short(q.Host))
	}
	return true, fmt.Sprintf("Node %s exists, and the bridge has rebootstrap: Allow", short(q.Host))
}

// Keys are those of the host's pending bootstrap CSRs that were made in its DPU's life. A kubelet keeps its key until it has a certificate
// (kubelet pkg/kubelet/certificate/bootstrap, kubelet-client.key.tmp): a second key is a new installation's, or somebody else's.
func (f Facts) Keys(host string, d DPU) map[Key]bool {
	q, keys := &question{dpu: d}, map[Key]bool{}
	for _, a := range f.Asking[host] {
		if a.Kind == Bootstrap && a.Created.After(q.aliveSince()) {
			keys[a.Key] = true
		}
	}
	return keys
}

// hasTheOnlyKey: otherwise the last to ask would get in as soon as somebody deletes the Node, which RebootstrapRefused tells them to do.
func (q *question) hasTheOnlyKey() (bool, string) {
	keys := q.Keys(q.Host, q.dpu)
	keys[q.Key] = true
	switch {
	case q.Hidden && q.NoRebootstrap:
		return false, "more bootstrap CSRs with different keys waited for the host than are kept, and the bridge has rebootstrap: Never; delete those that are not the DPU's"
	case len(keys) == 1:
		return true, "all bootstrap CSRs that wait for the host have one key"
	case q.NoRebootstrap:
		return false, fmt.Sprintf("bootstrap CSRs with %d different keys wait for the host, and the bridge has rebootstrap: Never; delete those that are not the DPU's", len(keys))
	}
	return true, fmt.Sprintf("bootstrap CSRs with %d different keys wait for the host, and the bridge has rebootstrap: Allow", len(keys))
}

func (q *question) isAlone() (bool, string) {
	if q.last.Name == "" {
		return true, fmt.Sprintf("no bootstrap CSR of this DPU (UID %s) was approved", q.dpu.UID)
	}
	until := q.last.At.Add(onceIn)
	if q.Now.Before(until) {
		q.wait(until)
	}
	return !q.Now.Before(until), fmt.Sprintf("CSR %s of this DPU was approved at %s; another may be from %s on", short(q.last.Name), stamp(q.last.At), stamp(until))
}

// isNewest: a CSR older than the approved one has nobody waiting for it any more.
func (q *question) isNewest() (bool, string) {
	for _, p := range q.Approved[q.Host] {
		if p.Name != q.Name && (p.DPU == q.dpu.UID || p.DPU == "") && !q.Created.After(p.Created) {
			return false, fmt.Sprintf("CSR %s of this DPU, no older than this one (%s), was approved", short(p.Name), stamp(p.Created))
		}
	}
	return true, "none of this DPU that is as new was approved"
}

func (q *question) hasJoined() (bool, string) {
	return q.joined, fmt.Sprintf("Node %s exists: %t", short(q.Host), q.joined)
}

func (q *question) hasOwnAddresses() (bool, string) {
	return q.none("an address of Node "+short(q.Host), func(ip netip.Addr) string {
		if holds(q.node.Addresses, ip) {
			return ""
		}
		return "no address of Node " + short(q.Host)
	})
}

func (q *question) takesFromNoNode() (bool, string) {
	return q.none("of no other Node", func(ip netip.Addr) string {
		for _, name := range q.Holders[ip] {
			if name != q.Host {
				return "an address of Node " + short(name) + " too"
			}
		}
		return ""
	})
}

// takesFromNoDPU compares with DPUs of this DPUCluster only (operator-rules.md#csr-serving). DPF takes a DPU's addresses from what its Node
// claims, and another cluster's claims block nobody here: only this hosted cluster's API server trusts the certificate, and separate
// networks may use the same addresses.
func (q *question) takesFromNoDPU() (bool, string) {
	others := map[netip.Addr]string{}
	for _, d := range q.DPUs {
		if d.Cluster != q.Cluster || d.UID == q.dpu.UID {
			continue
		}
		for _, ip := range d.Addresses {
			others[ip.Unmap()] = "an address of DPU " + d.String()
		}
	}
	return q.none("of no other DPU", func(ip netip.Addr) string { return others[ip] })
}

func (q *question) takesFromNoService() (bool, string) {
	return q.none("of no Service", func(ip netip.Addr) string {
		if service, taken := q.Services[ip]; taken {
			return "an address of Service " + short(service)
		}
		for _, network := range q.ServiceNetworks {
			if network.Contains(ip) {
				return "in the Services' network " + network.String()
			}
		}
		if q.ServicesUnknown {
			return "perhaps that of a Service: the hosted cluster has more of them than are kept"
		}
		return ""
	})
}

func (q *question) takesFromNoAPI() (bool, string) {
	return q.none("not the API server's", func(ip netip.Addr) string {
		if holds(q.API, ip) || q.HostedAPI[ip] {
			return "an address of the API server"
		}
		return ""
	})
}

func (q *question) isElsewhere() (bool, string) {
	return q.none("not local, nor a metadata service's", func(ip netip.Addr) string {
		if unroutable.Is(ip) {
			return "an address of any machine itself, of its link, or of a metadata service"
		}
		return ""
	})
}

// none says that no address is feared, or names the first that is.
func (q *question) none(message string, feared func(netip.Addr) string) (bool, string) {
	for _, ip := range q.Addresses {
		if what := feared(ip); what != "" {
			return false, fmt.Sprintf("%s is %s", ip, what)
		}
	}
	return true, fmt.Sprintf("addresses %v: %s", q.Addresses, message)
}

func (q *question) wait(until time.Time) {
	if q.again.IsZero() || until.After(q.again) {
		q.again = until
	}
}

func holds(all []netip.Addr, ip netip.Addr) bool {
	return slices.ContainsFunc(all, func(at netip.Addr) bool { return at.Unmap() == ip })
}

func (d DPU) String() string {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}.String()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
