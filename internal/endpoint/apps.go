package endpoint

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// The names of the rows of *.apps.
const (
	AppsHTTPS = "apps-https"
	AppsHTTP  = "apps-http"
)

// WithApps adds the rows of *.apps, or says which of them clashes with a row of the table, and why.
func (t Table) WithApps(rows ...Endpoint) (Table, string) {
	all := t
	for _, row := range rows {
		for _, other := range all.Endpoints {
			if why := row.clash(other); why != "" {
				return t, row.Name + " " + why
			}
		}
		all.Endpoints = slices.Concat(all.Endpoints, []Endpoint{row})
	}
	return all, ""
}

// AppsDomain is the domain of *.apps: the one that the cluster's ingress sets, or else apps. of the cluster's domain
// (upstream.md#apps-domain).
func (cp ControlPlane) AppsDomain() string {
	if written := cp.writtenApps(); written != "" {
		return written
	}
	return "apps." + cp.Domain()
}

// Record is one name of the VLAN with one address.
type Record struct {
	Hostname string
	IP       netip.Addr
}

// Records are what the VLAN's DNS answers: each name with its own addresses, or else with those of the proxy, if there is one.
func (t Table) Records(proxy ...netip.Addr) []Record {
	var all []Record
	for _, e := range t.Endpoints {
		answers := e.Answers
		if len(answers) == 0 {
			answers = proxy
		}
		for _, h := range e.Hostnames {
			for _, a := range answers {
				all = append(all, Record{h, a})
			}
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), a.IP.Compare(b.IP)) })
	return slices.Compact(all)
}

// Named is the name of the endpoint whose records have a host name; empty if none has. Without a proxy only those have records that have answers
// of their own.
func (t Table) Named(hostname string, proxied bool) string {
	for _, e := range t.Endpoints {
		if (proxied || len(e.Answers) > 0) && slices.Contains(e.Hostnames, hostname) {
			return e.Name
		}
	}
	return ""
}

// Unnamed are the entries whose name the records of no endpoint have.
func (t Table) Unnamed(entries []v1alpha1.DNSEntry, proxied bool) []v1alpha1.DNSEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.DNSEntry) bool { return t.Named(string(e.Hostname), proxied) != "" })
}
