package leasefile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/moving/braces"
	"github.com/cldmnky/oooi/internal/moving/draft"
)

// dhcpd reads ISC dhcpd's dhcpd.leases (dhcpd.leases(5)): declarations "lease ADDRESS { statement; … }", of which the last one for an address
// counts. All else is passed over.
func dhcpd(content string) ([]Entry, []Problem) {
	var found last
	for _, s := range braces.Parse(draft.File{Text: content}, false) {
		switch {
		case s.Is("lease") && s.Opens && len(s.Words) == 2:
			found.dhcpdLease(s)
		case s.Cut && !s.Opens:
			found.skip(s.Number, "the file ends in a statement: %s", s)
		}
	}
	return found.all()
}

func (l *last) dhcpdLease(s braces.Statement) {
	e := Entry{Line: s.Number}
	var known bool
	e.IP, known = l.ipv4(s.Number, s.Words[1].Text)
	if s.Cut {
		l.skip(s.Number, "the file ends in the lease of %s", s.Words[1].Text)
		return
	}
	mac, state, ends := "", "", ""
	for _, of := range s.Block {
		switch {
		case of.Is("hardware", "ethernet") && len(of.Words) == 3:
			mac = of.Words[2].Text
		case of.Is("binding", "state") && len(of.Words) == 3:
			state = of.Words[2].Text
		case of.Is("client-hostname") && len(of.Words) == 2:
			e.Hostname = label(of.Words[1].Text)
		case of.Is("uid") && len(of.Words) == 2:
			e.ClientID = uid(of.Words[1])
		case of.Is("ends"):
			ends = strings.TrimPrefix(of.String(), "ends ")
		}
	}
	if known {
		l.dhcpdEntry(e, mac, state, ends)
	}
}

func (l *last) dhcpdEntry(e Entry, mac, state, ends string) {
	if state != "active" {
		e.Over = state
	}
	if !l.identify(&e, mac) {
		return
	}
	var err error
	if e.Ends, err = dhcpdTime(ends); err != nil && e.Over == "" {
		l.skip(e.Line, "the lease of %s: %v", e.IP, err)
		return
	}
	l.say(e)
}

// dhcpdTime reads "never", "epoch SECONDS", or day of the week, date and time in UTC.
func dhcpdTime(text string) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if seconds, is := strings.CutPrefix(text, "epoch "); is {
		at, err := strconv.ParseInt(seconds, 10, 64)
		return time.Unix(at, 0).UTC(), err
	}
	if len(text) < 2 {
		return time.Time{}, fmt.Errorf("it has no statement \"ends\"")
	}
	return time.Parse("2006/01/02 15:04:05", text[2:])
}

// uid is a client identifier as it was written: as octets in hex, or as a string.
func uid(w braces.Word) string {
	if w.Quoted {
		return lease.Hex([]byte(w.Text))
	}
	return octets(w.Text)
}
