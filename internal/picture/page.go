// Package picture draws an Infra: its VLAN with what serves there, the upstreams, the pool, and the boot wall, which has a row for each worker
// and a cell for each stage of its boot. It is pure: Of makes a Page from facts that were read before, as package diagnose judges them;
// Text draws it for a terminal, HTML for a browser. `oooi status`, `oooi ui` and the manager show the same page.
package picture

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/step"
)

// Page is what is shown of one Infra.
type Page struct {
	Namespace, Name string
	// Ready is OK if a worker that boots now can join, and Says why, or why not.
	Ready step.Outcome
	Says  string
	// CIDR of the VLAN, and Network, its NetworkAttachmentDefinition as namespace/name.
	CIDR, Network string
	Services      []Service
	Upstreams     []Upstream
	Pool          Pool
	// Stages are the columns of the boot wall, and SeenStages those of what was seen of workers.
	Stages     []string
	SeenStages []SeenStage
	// Workers that are drawn, and Undrawn, how many more there are.
	Workers []Worker
	Undrawn int
	// Unmatched are the server names that workers asked the proxy for and no backend has.
	Unmatched []diagnose.Unmatched
	// Requests for certificates that are shown, those that wait first, and Decided, how many there are of each decision.
	Requests []Request
	Decided  map[Decision]int
	// Count of all workers in each state.
	Count map[State]int
	// Unread is what could not be read, each with the reason.
	Unread []string
}

// Service is DHCP, DNS or the proxy.
type Service struct {
	Name      string
	Outcome   step.Outcome
	Says      string
	Instances []Instance
}

// Instance is one pod of a service.
type Instance struct {
	IP, Node string
	Ready    bool
	// Says why it is not ready.
	Says string
}

// proxyName is the service that has upstreams.
const proxyName = "proxy"

// Upstream is what the proxy forwards to.
type Upstream struct {
	Name           string
	Healthy, Total int32
	// Names that workers dial, each as host:port.
	Names []string
	// Faulty says that a target answers, and workers refuse it.
	Faulty bool
	Says   string
}

// Outcome is OK if a target answers that a worker can use.
func (u Upstream) Outcome() step.Outcome {
	if u.Healthy == 0 || u.Faulty {
		return step.Fail
	}
	return step.OK
}

// State of a worker.
type State string

// The states, and the words for them.
const (
	Joined  State = "joined"  // all stages are ok
	Booting State = "booting" // it may still go on by itself
	Stopped State = "stopped" // it stands, until somebody mends what its last step names
	Partly  State = "partly read"
)

// States are all, as they are counted.
var States = []State{Joined, Booting, Stopped, Partly}

// Worker is a row of the boot wall.
type Worker struct {
	Name, Address string
	State         State
	// At is the stage at which it stands, with what is said of it; empty if it has joined.
	At   string
	Says string
	// Cells has the outcome at each of the page's stages; empty where it has not come.
	Cells []step.Outcome
	// Seen has the outcome of each of the page's SeenStages; empty if nobody saw it.
	Seen  []step.Outcome
	Steps []step.Step
}

// mostDrawn is how many workers have a row: a guest can invent DHCP clients.
const mostDrawn = 1000

// Of makes the page.
func Of(f diagnose.Facts) Page {
	p := Page{Namespace: f.Infra.Namespace, Name: f.Infra.Name, CIDR: string(f.Infra.Spec.NetworkConfig.CIDR), Stages: diagnose.Stages(), Count: map[State]int{}, Unread: unread(f)}
	p.Network = input.Refs(f.Infra).NAD.String()
	p.Ready, p.Says = ready(f.Infra)
	p.Services, p.Upstreams, p.Pool = services(f), upstreams(f), pool(f)
	paths := diagnose.Paths(f)
	p.SeenStages = seenOf(paths)
	for _, path := range paths {
		w := workerOf(path, p.Stages, p.SeenStages)
		p.Count[w.State]++
		if len(p.Workers) < mostDrawn {
			p.Workers = append(p.Workers, w)
		} else {
			p.Undrawn++
		}
	}
	p.Unmatched, p.Requests, p.Decided = diagnose.UnmatchedNames(f), requests(f), map[Decision]int{}
	for _, r := range p.Requests {
		p.Decided[r.Decision]++
	}
	p.Requests = p.Requests[:min(len(p.Requests), mostRequests)]
	return p
}

func ready(infra *v1alpha1.Infra) (step.Outcome, string) {
	c := meta.FindStatusCondition(infra.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return step.Unread, "the operator has not looked at it yet; see whether it runs: oooi check"
	case c.Status != metav1.ConditionTrue:
		return step.Fail, c.Reason + ": " + c.Message
	case c.Reason == v1alpha1.ReasonProbeFails:
		return step.Warn, c.Reason + ": " + c.Message
	}
	return step.OK, cmp.Or(c.Message, c.Reason)
}

func services(f diagnose.Facts) (all []Service) {
	said := map[string]step.Step{}
	for _, s := range diagnose.Services(f) {
		said[s.Name] = s
	}
	of := func(name, stage string, instances []v1alpha1.Instance) {
		s := Service{Name: name, Outcome: said[stage].Outcome, Says: said[stage].Says}
		for _, i := range instances {
			s.Instances = append(s.Instances, Instance{IP: string(i.IP), Node: i.Node, Ready: i.Ready, Says: i.Message})
		}
		all = append(all, s)
	}
	var dhcp, dns, proxy []v1alpha1.Instance
	if f.DHCP.Is != nil {
		dhcp = f.DHCP.Is.Status.Instances
	}
	if f.DNS.Is != nil {
		dns = f.DNS.Is.Status.Instances
	}
	if f.Proxy.Is != nil {
		proxy = f.Proxy.Is.Status.Instances
	}
	of("DHCP", "dhcp", dhcp)
	of("DNS", "names", dns)
	of(proxyName, "proxy", proxy)
	return all
}

// upstreams are those that the proxy reports, in its order, with the names that lead there.
func upstreams(f diagnose.Facts) (all []Upstream) {
	if f.Proxy.Is == nil {
		return nil
	}
	for _, b := range f.Proxy.Is.Status.Backends {
		u := Upstream{Name: b.Name, Healthy: b.Healthy, Total: b.Total, Says: b.Message}
		if fault := f.FaultOf(b.Name); fault != nil {
			u.Faulty, u.Says = true, fault.Message
		}
		for _, e := range f.Infra.Status.Endpoints {
			if e.Name != b.Name {
				continue
			}
			for _, host := range e.Hostnames {
				u.Names = append(u.Names, fmt.Sprintf("%s:%d", host, e.Port))
			}
		}
		all = append(all, u)
	}
	return all
}

func workerOf(path diagnose.Path, stages []string, seenStages []SeenStage) Worker {
	w := Worker{Name: path.Worker, Address: path.Address, State: Joined, Cells: make([]step.Outcome, len(stages)), Seen: seen(path.Seen, seenStages), Steps: path.Steps}
	for _, s := range path.Steps {
		w.Cells[slices.Index(stages, s.Name)] = s.Outcome
		if s.Outcome == step.Unread && w.State == Joined {
			w.State, w.At, w.Says = Partly, s.Name, s.Says
		}
	}
	switch last := path.Steps[len(path.Steps)-1]; {
	case diagnose.Waits(last):
		w.State, w.At, w.Says = Booting, last.Name, last.Says
	case last.Outcome == step.Fail:
		w.State, w.At, w.Says = Stopped, last.Name, last.Says
	}
	return w
}

// What tells of workers, as unread names it.
const leases, machines = "leases", "virtual machines"

// unread lists each reason once: several kinds may be in one namespace that nobody may read.
func unread(f diagnose.Facts) (all []string) {
	for what, why := range map[string]string{
		"the DHCPServer": f.DHCP.Unread, "the DNSServer": f.DNS.Unread, "the ProxyServer": f.Proxy.Unread, leases: f.Leases.Unread,
		"the HostedCluster": f.HostedCluster.Unread, "NodePools": f.NodePools.Unread, machines: f.Machines.Unread, "networks": f.Networks.Unread,
		"NetworkPolicies": f.Policies.Unread, "Ignition's tokens": f.Tokens.Unread, "the ignition server's endpoints": f.Ignition.Unread,
		"events": f.Warnings.Unread, "the hosted cluster": f.Hosted.Unread,
	} {
		if why != "" {
			all = append(all, what+": "+why)
		}
	}
	slices.Sort(all)
	return all
}
