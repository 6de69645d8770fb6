package endpoint

import (
	"cmp"
	"net/netip"
	"slices"
)

// Names of the rows of *.apps.
const (
	AppsHTTPS = "apps-https"
	AppsHTTP  = "apps-http"
)

// WithApps adds the rows of *.apps, or says which of them cannot stand beside what the table has, and why.
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

// AppsDomain is what *. is put before: as the cluster's ingress has it, else apps. of the cluster's domain
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

// Records are what the VLAN's DNS answers: each name with addresses of its own, else with the proxy's, if there is one.
func (t Table) Records(proxy netip.Addr) []Record {
	var all []Record
	for _, e := range t.Endpoints {
		answers := e.Answers
		if len(answers) == 0 && proxy.IsValid() {
			answers = []netip.Addr{proxy}
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
