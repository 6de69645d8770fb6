package leasefile

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keaStates are the states of a lease that are no binding (Kea 2.6, src/lib/dhcpsrv/lease.cc, Lease::basicStatesToText).
var keaStates = map[string]string{"1": "declined", "2": "expired", "3": "released"}

// infinity is a valid lifetime without end (RFC 2131 §3.3).
const infinity = "4294967295"

// kea reads the CSV file of Kea's memfile, whose first line names its columns. Its journal has a line for each change.
func kea(content string) ([]Entry, []Problem) {
	var found last
	r := csv.NewReader(strings.NewReader(content))
	r.FieldsPerRecord = -1
	columns, err := r.Read()
	if err != nil || !slices.Contains(columns, "address") || !slices.Contains(columns, "expire") {
		found.skip(1, "the first line must name Kea's columns, address, hwaddr and expire among them")
		return found.all()
	}
	for {
		row, err := r.Read()
		line, _ := r.FieldPos(0)
		switch {
		case errors.Is(err, io.EOF):
			return found.all()
		case err != nil:
			found.skip(line, "%v", err)
		default:
			found.keaLease(line, func(column string) string {
				if i := slices.Index(columns, column); i >= 0 && i < len(row) {
					return row[i]
				}
				return ""
			})
		}
	}
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
	if e.Client, ok = client(of("hwaddr"), e.ClientID); !ok && e.Over == "" {
		l.skip(line, "%s has neither an Ethernet address nor a client identifier", ip)
		return
	}
	l.say(e)
}
