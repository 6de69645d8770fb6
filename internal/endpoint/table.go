// Package endpoint is the single source of what workers dial: names, ports, TLS, and where each leads. DNS records, proxy routes and
// NetworkPolicy ports are views of its table; no other package knows a port of a hosted control plane.
package endpoint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/valid"
)

// Endpoint is one thing that workers dial.
type Endpoint struct {
	// Name of the row: api, ignition, oauth, konnectivity, metrics-proxy, apps-https, apps-http, or that of an extra endpoint.
	Name string
	// Hostnames that DNS answers; with TLS, also the server names that lead here.
	Hostnames []string
	// Answers replace the proxy's address in the VLAN's DNS.
	Answers []netip.Addr
	// PublishedIPs are addresses that workers dial instead of a name.
	PublishedIPs []netip.Addr
	// Port that workers dial.
	Port int32
	// Protocol: TLS shares the port by server name; TCP has the port to itself.
	Protocol v1alpha1.Protocol
	// CatchAll: connections to the port without a server name, or with an unknown one, lead here too.
	CatchAll bool
	// Backend is where it leads.
	Backend Backend
	// Views in which DNS answers it.
	Views v1alpha1.Views
	// Source is where name and port were found.
	Source string
}

// Backend is a port of a Service, or fixed addresses.
type Backend struct {
	Namespace, Service string
	Port               int32
	Addresses          []netip.AddrPort
}

// String is namespace/service:port, or the addresses.
func (b Backend) String() string {
	if b.Service != "" {
		return fmt.Sprintf("%s/%s:%d", b.Namespace, b.Service, b.Port)
	}
	var all []string
	for _, a := range b.Addresses {
		all = append(all, a.String())
	}
	return strings.Join(all, ",")
}

// Table is every endpoint of one control plane, and what is wrong with it or missing from it.
type Table struct {
	Endpoints []Endpoint
	of        ControlPlane
	awaited   []string
	findings  []finding.Finding
}

// Findings are what is awaited, as one finding, and everything else that was found.
func (t Table) Findings() []finding.Finding {
	if len(t.awaited) == 0 {
		return t.findings
	}
	waiting := finding.Wait(v1alpha1.ConditionEndpointsResolved, "WaitingForControlPlane").In(Object(t.of.HostedCluster)).At("status").Say("waiting for %s", strings.Join(t.awaited, ", "))
	return append([]finding.Finding{waiting}, t.findings...)
}

// Names are all hostnames of the table.
func (t Table) Names() []string {
	var all []string
	for _, e := range t.Endpoints {
		all = append(all, e.Hostnames...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Dials are what workers dial, as host:port; of a host that is written but has no port yet, only the host.
func (t Table) Dials() []string {
	var all []string
	for _, e := range t.Endpoints {
		for _, name := range e.Hostnames {
			all = append(all, fmt.Sprintf("%s:%d", name, e.Port))
		}
		for _, published := range e.PublishedIPs {
			all = append(all, netip.AddrPortFrom(published, uint16(e.Port)).String())
		}
	}
	if t.of.HostedCluster == nil || len(t.awaited) == 0 {
		return all
	}
	for _, name := range t.of.hostnames() {
		if !slices.Contains(t.Names(), name) {
			all = append(all, name)
		}
	}
	for _, s := range t.of.services() {
		name, is := nodePortName(s.ServicePublishingStrategy)
		if is && !slices.Contains(t.Names(), name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, e := range t.Announced() {
		all = append(all, e.PublishedIPs[0].String())
	}
	return all
}

func (t *Table) await(format string, args ...any) {
	t.awaited = append(t.awaited, fmt.Sprintf(format, args...))
}

func (t *Table) find(f finding.Finding) { t.findings = append(t.findings, f) }

// needs records a finding if an object that is read is kept only in part (internal/kept): it may be looked up repeatedly, and is reported
// once.
func (t *Table) needs(object kept.Object) {
	for _, f := range kept.Judge(v1alpha1.ConditionEndpointsResolved, object) {
		if !slices.ContainsFunc(t.findings, func(other finding.Finding) bool { return other.Of == f.Of }) {
			t.find(f)
		}
	}
}

// add adds an endpoint with the hosts that workers dial for it, names and addresses mixed.
func (t *Table) add(e Endpoint, hosts ...string) {
	for _, host := range hosts {
		if a, ok := valid.Address(host); ok {
			e.PublishedIPs = appendNew(e.PublishedIPs, a)
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(host, "."))
		if errs := validation.IsDNS1123Subdomain(name); errs != nil {
			t.find(finding.Refuse(v1alpha1.ConditionEndpointsResolved, "InvalidHostname").In(Object(t.of.HostedCluster)).At("status").Say("%s has host %q, which is neither a DNS name nor an address", e.Source, host))
			continue
		}
		e.Hostnames = appendNew(e.Hostnames, name)
	}
	if e.Protocol == v1alpha1.ProtocolTLS && len(e.Hostnames) == 0 && !e.CatchAll {
		t.find(finding.Refuse(v1alpha1.ConditionEndpointsResolved, "InvalidHostname").In(Object(t.of.HostedCluster)).At("status").Say("%s has no DNS name, but shares its port by server name", e.Source))
		return
	}
	t.Endpoints = append(t.Endpoints, e)
}

func appendNew[T comparable](list []T, value T) []T {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
