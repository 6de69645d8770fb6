package plan

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// target is where one worker takes *.apps.
type target struct{ https, http netip.AddrPort }

func targetAt(at netip.Addr, https, http int32) target {
	return target{netip.AddrPortFrom(at, uint16(https)), netip.AddrPortFrom(at, uint16(http))}
}

// shut says whether nobody gets to the routers through the proxy; publishers and spokenTo tell it.
func (a *appsView) shut() bool {
	return !enabled(a.Infra.Spec.InfraComponents.Proxy.Enabled) || a.routers().expectsPROXY() != ""
}

// nodePort leads to the router's node ports on the workers. Only once it does, the Service that there may be is not needed.
func (a *appsView) nodePort() {
	a.plan.Undecided = true
	https, http := nodePortOf(a.Guest.Router, routerHTTPS), nodePortOf(a.Guest.Router, routerHTTP)
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
			a.find(appsWait("RouterNotFound").At(fieldAppsMode), "waiting for Service %s of the hosted cluster, with node ports for %d and %d; where the routers are not published by NodePort, set mode: LoadBalancer", RouterNodePort, routerHTTP, routerHTTPS)
		}
	case len(targets) == 0 || !slices.ContainsFunc(a.Guest.Nodes, func(n GuestNode) bool { return n.Ready && !n.Deleting }):
		a.find(appsWait("NoReadyWorkers"), "waiting for a Node of the hosted cluster that is Ready, with an address in networkConfig.cidr %s", a.cidr)
	default:
		a.through(targets, "Service "+RouterNodePort.String()+" of the hosted cluster")
	}
}

// hostNetwork leads to the routers that listen on their workers' own addresses, each at its own ports: of a strategy whose ports change
// there are old and new ones for a while. As in nodePort, what led elsewhere stays until this does.
func (a *appsView) hostNetwork() {
	a.plan.Undecided = true
	var targets []target
	found, ready := false, false
	for _, r := range a.Guest.Routers {
		if !r.onWorker() {
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
			a.find(appsWait("RouterNotFound").At(fieldAppsMode), "waiting for a router of the hosted cluster that listens on its worker: a pod in namespace %s with label %s=%s, hostNetwork, and ports named http and https", RouterNamespace, RouterLabel, RouterIngress.Name)
		}
	case !ready:
		a.find(appsWait("NoReadyRouter"), "waiting for a router of the hosted cluster that is Ready, on a Node with an address in networkConfig.cidr %s", a.cidr)
	default:
		a.through(targets, "the hosted cluster's routers on its workers")
	}
}

// onWorker says whether a router takes *.apps at its worker's addresses.
func (r GuestRouter) onWorker() bool {
	return r.HostNetwork && !r.Ending && isPort(r.HTTPS) && isPort(r.HTTP)
}

func isPort(port int32) bool { return 0 < port && port <= math.MaxUint16 }

// worker is the address of one that is there, Ready or not: whether it serves, the proxy sees for itself every second, and the hosted
// cluster calls all of them NotReady when they lose its API.
func (a *appsView) worker(n GuestNode) (netip.Addr, bool) {
	i := slices.IndexFunc(n.Addresses, func(at netip.Addr) bool { return a.onVLAN(at) && a.holder(at) == "" })
	if i < 0 || n.Deleting {
		return netip.Addr{}, false
	}
	return n.Addresses[i], true
}

// through has the proxy spread over as many targets as a ProxyServer has room for.
func (a *appsView) through(targets []target, source string) {
	a.plan.Undecided = false
	slices.SortFunc(targets, func(x, y target) int { return cmp.Or(x.https.Compare(y.https), x.http.Compare(y.http)) })
	targets = slices.Compact(targets)
	if len(targets) > mostTargets {
		a.find(appsNote("NotAllWorkers", fieldAppsMode), "*.apps leads to the first %d of %d workers by address; set mode: %s to have all of them", mostTargets, len(targets), v1alpha1.AppsLoadBalancer)
		targets = targets[:mostTargets]
	}
	a.route = appsRoute{source: source}
	for _, t := range targets {
		a.route.https, a.route.http = append(a.route.https, t.https), append(a.route.http, t.http)
	}
}
