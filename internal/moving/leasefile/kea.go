package leasefile

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// keaStates are the states of a lease that are no binding (Kea 2.6, src/lib/dhcpsrv/lease.cc, Lease::basicStatesToText).
var keaStates = map[string]string{"1": "declined", "2": "expired", "3": "released"}

// infinity is a valid lifetime without end (RFC 2131 §3.3).
const infinity = "4294967295"

// kea reads the file of Kea's memfile, whose first line names its columns. Its journal has a line for each change. Kea quotes nothing, and a value
// that has a comma has it escaped (Kea 2.6, src/lib/util/csv_file.cc, CSVRow).
func kea(content string) ([]Entry, []Problem) {
	var found last
	var columns []string
	for line, text := range lines(content) {
		values := strings.Split(text, ",")
		switch {
		case line == 1 && slices.Contains(values, "address") && slices.Contains(values, "expire"):
			columns = values
		case line == 1:
			found.skip(1, "the first line must name Kea's columns, address, hwaddr and expire among them")
			return found.all()
		case len(values) > 1 || values[0] != "":
			found.keaLease(line, func(column string) string {
				if i := slices.Index(columns, column); i >= 0 && i < len(values) {
					return unescaped(values[i])
				}
				return ""
			})
		}
	}
	if content == "" {
		found.skip(1, "the file is empty")
	}
	return found.all()
}

// unescaped replaces each &#x and two hexadecimal digits by that octet.
func unescaped(value string) string {
	before, rest, is := strings.Cut(value, "&#x")
	if !is {
		return value
	}
	if len(rest) >= 2 {
		if octet, err := strconv.ParseUint(rest[:2], 16, 8); err == nil {
			return before + string([]byte{byte(octet)}) + unescaped(rest[2:])
		}
	}
	return before + "&#x" + unescaped(rest)
}

func (l *last) keaLease(line int, of func(column string) string) {
	ip, ok := l.ipv4(line, of("address"))
	if !ok {
		return
	}
	expire, err := strconv.ParseInt(of("expire"), 10, 64)
	if err != nil {
		l.skip(line, "%q in column expire is no time in seconds since 1970", of("expire"))
		return
	}
	e := Entry{Line: line, IP: ip, ClientID: octets(of("client_id")), Hostname: label(of("hostname")), Over: keaStates[of("state")]}
	if of("valid_lifetime") != infinity {
		e.Ends = time.Unix(expire, 0).UTC()
	}
	if l.identify(&e, of("hwaddr")) {
		l.say(e)
	}
}
