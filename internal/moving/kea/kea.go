// Package kea reads configurations of Kea's DHCPv4 server (Kea Administrator Reference Manual, version 2.2).
package kea

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

type reader struct {
	*draft.Site
	defined map[string]definition // options that the file makes up
}

// Read adds what files say.
func Read(site *draft.Site, files []draft.File) {
	sources := draft.NewSources(files)
	for _, whole := range draft.Roots(sources, func(file draft.File) text {
		var t text
		t.add(sources, file)
		return t
	}) {
		r := &reader{Site: site, defined: map[string]definition{}}
		for _, file := range whole.unread {
			r.NotRead(file.Line, file.error, "--kea")
		}
		top, at, err := parse(whole)
		if err != nil {
			r.NotRead(at, fmt.Errorf("nothing is read from here on, since Kea refuses it, too: %w: mend it", err), "--kea")
		}
		for _, f := range top.fields {
			if f.name == "Dhcp4" {
				r.refused(f.value)
				r.server(f.value)
				continue
			}
			r.Leave(r.at(f), "it is no DHCPv4 server's; all that stands in it is left, too")
		}
	}
	site.LastsElse(2 * time.Hour) // valid-lifetime, if it is not written
}

// at is a field as a statement: its name, and its value if that is one word.
func (r *reader) at(f field) draft.Line {
	text := strconv.Quote(f.name)
	switch {
	case f.value.object:
		text += ": {…}"
	case len(f.value.items) > 0:
		text += ": […]"
	case f.value.text != "":
		text += ": " + f.value.text
	}
	f.at.Text = text
	return f.at
}

// integers are those that mean something here.
var integers = map[string]bool{
	"valid-lifetime": true, "min-valid-lifetime": true, "max-valid-lifetime": true, "renew-timer": true, "rebind-timer": true, "code": true, "id": true,
}

// refused lists what Kea does not take for an integer where it expects one (Kea: src/bin/dhcp4/dhcp4_parser.yy).
func (r *reader) refused(n node) {
	for _, f := range n.fields {
		if integers[f.name] && f.value.float {
			r.NotRead(r.at(f), errors.New("it is left, since Kea refuses it, too: write the integer without a plus, point or exponent"), "--kea")
		}
		if f.name != "user-context" && f.name != "hooks-libraries" { // which may have anything
			r.refused(f.value)
		}
	}
	for _, item := range n.items {
		r.refused(item)
	}
}

// withoutEffect are about the process, its leases' file and its log, none of which remain; comments; or say what an Infra does anyway.
var withoutEffect = map[string]bool{
	"interfaces-config": true, "control-socket": true, "control-sockets": true, "lease-database": true, "expired-leases-processing": true, "loggers": true, "user-context": true,
	"comment": true, "id": true, "interface": true, "multi-threading": true, "sanity-checks": true, "statistic-default-sample-age": true,
	"statistic-default-sample-count": true, "dhcp-queue-control": true, "decline-probation-period": true, "echo-client-id": true, "match-client-id": true,
	"calculate-tee-times": true, "t1-percent": true, "t2-percent": true, "host-reservation-identifiers": true, "reservations-in-subnet": true,
	"reservations-out-of-pool": true, "reservations-lookup-first": true, "store-extended-info": true, "server-tag": true, "ip-reservations-unique": true,
}

var says = map[string]string{
	"renew-timer":            "clients renew after half of the lease's time (T1)",
	"rebind-timer":           "clients ask any server after seven eighths of the lease's time (T2)",
	"min-valid-lifetime":     "a lease lasts for dhcp.leaseTime, whatever a client asks for",
	"max-valid-lifetime":     "a lease lasts for dhcp.leaseTime, whatever a client asks for",
	"authoritative":          "DHCP refuses an address of another network, and is silent about one that it does not know",
	"client-classes":         ofSome,
	"client-class":           ofSome,
	"require-client-classes": ofSome,
	"hooks-libraries":        "two instances of an Infra share their leases by themselves; there are no hooks",
	"next-server":            "clients are told the name of the boot server (option 66), and no address in the header (siaddr)",
	"hosts-database":         "write the reservations of the database into a file, and give it with --kea",
	"hosts-databases":        "write the reservations of the database into a file, and give it with --kea",
	"dhcp-ddns":              "DNS answers the names of leases by itself",
	"hostname-char-set":      "the host name of a reservation is one label of lower case letters, digits and -",
	"ddns-send-updates":      "DNS answers the names of leases by itself",
	"reservation-mode":       "reservations may be in the pool or outside",
	"cache-threshold":        "every renewal prolongs the lease",
	"offer-lifetime":         "an offer is kept for 10 seconds",
}

// ofSome is why what is for some clients is left.
const ofSome = "it is for some clients only, and an Infra serves all alike"

func (r *reader) other(f field) {
	if withoutEffect[f.name] {
		return
	}
	why := says[f.name]
	if why == "" {
		why = "an Infra has nothing like it"
	}
	r.Leave(r.at(f), "%s", why)
}

func (r *reader) server(n node) {
	for _, d := range n.get("option-def").items {
		r.define(d)
	}
	for _, f := range n.fields {
		switch f.name {
		case "option-def":
		case "subnet4":
			r.subnets(f.value)
		case "shared-networks":
			r.shared(f.value)
		case "valid-lifetime":
			r.lifetime(&r.Lease, f)
		case "option-data":
			r.options(&r.Options, f.value)
		case "reservations":
			r.reservations(f.value)
		case "boot-file-name", "server-hostname":
			r.boot(&r.Options, f)
		case "allocator":
			r.Leave(r.at(f), "DHCP gives each client an address by its hash")
		default:
			r.other(f)
		}
	}
}

func (r *reader) subnets(all node) (made []draft.Subnet) {
	before := len(r.Subnets)
	for _, n := range all.items {
		r.subnet(n)
	}
	return r.Subnets[before:]
}

// shared has subnets on one wire; what it says is for each of them.
func (r *reader) shared(networks node) {
	for _, n := range networks.items {
		made := r.subnets(n.get("subnet4"))
		var common draft.Subnet
		for _, f := range n.fields {
			switch f.name {
			case "name", "subnet4", "client-class", "client-classes":
			case "valid-lifetime":
				r.lifetime(&common.Lease, f)
			case "option-data":
				r.options(&common.Options, f.value)
			case "relay":
				r.relays(&common, f)
			default:
				r.other(f)
			}
		}
		for i := range made {
			made[i].Shared = common.Options
			made[i].Relays = append(made[i].Relays, common.Relays...)
			if made[i].Lease == nil {
				made[i].Lease = common.Lease
			}
			r.limit(n.named(`"shared-networks": `+n.get("name").text), made[i].Ranges, n)
		}
	}
}

func (r *reader) subnet(n node) {
	made := draft.Subnet{Line: n.named(`"subnet": ` + n.get("subnet").text)}
	prefix, err := netip.ParsePrefix(n.get("subnet").text)
	if err != nil || !prefix.Addr().Is4() {
		r.Leave(made.Line, "its network cannot be read; all that stands in it is left, too")
		return
	}
	made.Prefix = prefix.Masked()
	for _, f := range n.fields {
		switch f.name {
		case "subnet", "client-class", "client-classes":
		case "pools":
			r.pools(&made, f.value)
		case "option-data":
			r.options(&made.Options, f.value)
		case "valid-lifetime":
			r.lifetime(&made.Lease, f)
		case "reservations":
			r.reservations(f.value)
		case "relay":
			r.relays(&made, f)
		case "boot-file-name", "server-hostname":
			r.boot(&made.Options, f)
		default:
			r.other(f)
		}
	}
	r.limit(made.Line, made.Ranges, n)
	r.Subnets = append(r.Subnets, made)
}

func (r *reader) pools(made *draft.Subnet, all node) {
	for _, n := range all.items {
		at := n.named(`"pool": ` + n.get("pool").text)
		first, last, ok := addresses(n.get("pool").text)
		if !ok {
			r.Leave(at, "its addresses cannot be read")
			continue
		}
		made.Ranges = append(made.Ranges, draft.Range{Line: at, First: first, Last: last})
		r.limit(at, made.Ranges[len(made.Ranges)-1:], n)
		for _, f := range n.fields {
			if f.name != "pool" && f.name != "client-class" && f.name != "client-classes" {
				r.other(f)
			}
		}
	}
}

// addresses of a pool: from one to another, or a network.
func addresses(text string) (first, last netip.Addr, ok bool) {
	from, to, is := strings.Cut(text, "-")
	if !is {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || !p.Addr().Is4() {
			return first, last, false
		}
		return p.Masked().Addr(), draft.LastOf(p), true
	}
	first, err := netip.ParseAddr(strings.TrimSpace(from))
	last, otherErr := netip.ParseAddr(strings.TrimSpace(to))
	return first, last, err == nil && otherErr == nil
}

func (r *reader) lifetime(into **draft.Lease, f field) {
	if f.value.float {
		return
	}
	seconds, err := strconv.ParseUint(f.value.text, 10, 32)
	if err != nil {
		r.Leave(r.at(f), "it is no number of seconds")
		return
	}
	*into = &draft.Lease{Line: r.at(f), Time: time.Duration(seconds) * time.Second}
}

func (r *reader) relays(made *draft.Subnet, f field) {
	items := f.value.get("ip-addresses").items
	if one := f.value.get("ip-address"); !one.null {
		items = append(items, one)
	}
	for _, n := range items {
		a, err := netip.ParseAddr(n.text)
		if err != nil {
			r.Leave(r.at(f), "%q is no address", n.text)
			continue
		}
		made.Relays = append(made.Relays, draft.Served{Line: r.at(f), By: draft.Leasing, At: a})
	}
}

func (r *reader) boot(into *[]draft.Option, f field) {
	if f.value.text != "" {
		*into = append(*into, draft.Option{Line: r.at(f), Code: map[string]int{"boot-file-name": 67, "server-hostname": 66}[f.name], Values: []string{f.value.text}})
	}
}
