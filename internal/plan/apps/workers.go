package apps

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

// target has the ports at which one worker serves *.apps.
type target struct{ https, http netip.AddrPort }

func targetAt(at netip.Addr, https, http int32) target {
	return target{netip.AddrPortFrom(at, uint16(https)), netip.AddrPortFrom(at, uint16(http))}
}

// shut says whether the proxy cannot reach the routers; publishers and spokenTo report why.
func (a *publisher) shut() bool {
	return !input.Enabled(a.Infra.Spec.InfraComponents.Proxy.Enabled) || a.routers().expectsPROXY() != ""
}

// nodePort routes to the router's node ports on the workers. An existing Service stays until it can.
func (a *publisher) nodePort() {
	a.plan.Undecided = true
	https, http := input.NodePortOf(a.Guest.Router, input.RouterHTTPS), input.NodePortOf(a.Guest.Router, input.RouterHTTP)
	var targets []target
	for _, n := range a.Guest.Nodes {
		if at, ok := a.worker(n); ok {
			targets = append(targets, targetAt(at, https, http))
		}
	}
	switch {
	case a.shut():
		// It is told.
	case https == 0 || http == 0:
		if !a.mismatched() {
			a.find(wait("RouterNotFound").At(fieldMode), "waiting for Service %s of the hosted cluster, with node ports for %d and %d; where the routers are not published by NodePort, set mode: LoadBalancer", input.RouterNodePort, input.RouterHTTP, input.RouterHTTPS)
		}
	case len(targets) == 0 || !slices.ContainsFunc(a.Guest.Nodes, func(n input.GuestNode) bool { return n.Ready && !n.Deleting }):
		a.find(wait("NoReadyWorkers"), "waiting for a Node of the hosted cluster that is Ready, with an address in networkConfig.cidr %s", a.CIDR)
	default:
		a.through(targets, "Service "+input.RouterNodePort.String()+" of the hosted cluster")
	}
}

// hostNetwork routes to the routers that listen on their workers' own addresses, each at its own ports, because after a change of ports, old
// and new routers exist for a while. As in nodePort, the previous route and Service stay until it can.
func (a *publisher) hostNetwork() {
	a.plan.Undecided = true
	var targets []target
	found, ready := false, false
	for _, r := range a.Guest.Routers {
		if !r.OnWorker() {
			continue
		}
		found = true
		for _, n := range a.Guest.Nodes {
			if at, ok := a.worker(n); ok && n.Name == r.Node {
				targets, ready = append(targets, targetAt(at, r.HTTPS, r.HTTP)), ready || r.Ready
			}
		}
	}
	switch {
	case a.shut():
		// It is told.
	case !found:
		if !a.mismatched() {
			a.find(wait("RouterNotFound").At(fieldMode), "waiting for a router of the hosted cluster that listens on its worker: a pod in namespace %s with label %s=%s, hostNetwork, and ports named http and https", input.RouterNamespace, input.RouterLabel, input.RouterIngress.Name)
		}
	case !ready:
		a.find(wait("NoReadyRouter"), "waiting for a router of the hosted cluster that is Ready, on a Node with an address in networkConfig.cidr %s", a.CIDR)
	default:
		a.through(targets, "the hosted cluster's routers on its workers")
	}
}

// worker is the address of a worker, Ready or not: the proxy checks every second whether it serves, and all of them are NotReady if they
// lose the hosted cluster's API.
func (a *publisher) worker(n input.GuestNode) (netip.Addr, bool) {
	i := slices.IndexFunc(n.Addresses, func(at netip.Addr) bool { return a.Host(at) && a.Holder(at) == "" })
	if i < 0 || n.Deleting {
		return netip.Addr{}, false
	}
	return n.Addresses[i], true
}

// through routes through the proxy to as many targets as a ProxyServer may have.
func (a *publisher) through(targets []target, source string) {
	a.plan.Undecided = false
	slices.SortFunc(targets, func(x, y target) int { return cmp.Or(x.https.Compare(y.https), x.http.Compare(y.http)) })
	targets = slices.Compact(targets)
	if len(targets) > valid.MostTargets {
		a.find(warn("NotAllWorkers", fieldMode), "*.apps leads to the first %d of %d workers by address; set mode: %s to use all of them", valid.MostTargets, len(targets), v1alpha1.AppsLoadBalancer)
		targets = targets[:valid.MostTargets]
	}
	a.route = input.AppsRoute{Source: source}
	for _, t := range targets {
		a.route.HTTPS, a.route.HTTP = append(a.route.HTTPS, t.https), append(a.route.HTTP, t.http)
	}
}
