package leasefile

import (
	"strconv"
	"strings"
	"time"
)

// dnsmasq reads lines of time, hardware address, address, name and client identifier, "*" for what is not known; 0 is a lease without end. A line
// "duid" begins the leases of DHCPv6 (dnsmasq 2.92, src/lease.c, lease_update_file).
func dnsmasq(content string) ([]Entry, []Problem) {
	var found last
	for number, text := range lines(content) {
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if f[0] == "duid" {
			break
		}
		if len(f) < 4 {
			found.skip(number, "a lease of dnsmasq has five words: time, hardware address, address, name, client identifier")
			continue
		}
		found.dnsmasqLease(number, f)
	}
	return found.all()
}

func (l *last) dnsmasqLease(line int, f []string) {
	ends, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || ends < 0 {
		l.skip(line, "%q is no time in seconds since 1970", f[0])
		return
	}
	ip, ok := l.ipv4(line, f[2])
	if !ok {
		return
	}
	e := Entry{Line: line, IP: ip, Hostname: label(f[3])}
	if len(f) > 4 {
		e.ClientID = octets(f[4])
	}
	if ends > 0 {
		e.Ends = time.Unix(ends, 0).UTC()
	}
	if l.identify(&e, f[1]) {
		l.say(e)
	}
}
