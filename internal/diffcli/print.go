package diffcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cldmnky/oooi/internal/change"
)

const (
	// mostFields is how many fields of one object the table has; JSON has all.
	mostFields = 8
	// widestValue is how many characters of a value it has.
	widestValue = 60
)

// JSON writes a report.
func JSON(to io.Writer, r Report) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Table writes a report for people.
func Table(to io.Writer, r Report) error {
	t := &table{to: to}
	if len(r.Objects) > 0 {
		t.line(0, "Files")
		t.objects(r.Objects)
	}
	for _, infra := range r.Infras {
		t.infra(infra)
	}
	for _, b := range r.Bridges {
		t.bridge(b)
	}
	if r.None() && len(r.Unread) == 0 {
		t.line(0, "Nothing changes.")
	}
	t.list(0, "Not read", r.Unread)
	t.list(0, "Not judged", r.NotJudged)
	t.list(0, "Passed over: what these change is not foretold", r.PassedOver)
	return t.err
}

type table struct {
	to  io.Writer
	err error
}

// line writes one line, without characters that a terminal would act on.
func (t *table) line(depth int, format string, a ...any) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, a...))
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.to, strings.Repeat("  ", depth)+text)
	}
}

func (t *table) list(depth int, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line(depth, "%s", heading)
	for _, l := range lines {
		t.line(depth+1, "%s", l)
	}
}

// subject is whose change follows.
func (t *table) subject(kind, namespace, name string, other bool) {
	which := ""
	if other {
		which = ", which no file has"
	}
	t.line(0, "%s %s/%s%s", kind, namespace, name, which)
}

func (t *table) written(all []change.Object) {
	if len(all) > 0 {
		t.line(1, "Written")
		t.objects(all)
	}
}

func (t *table) infra(i Infra) {
	t.subject("Infra", i.Namespace, i.Name, i.Other)
	if i.Stopped != "" {
		t.line(1, "Nothing is written: %s", i.Stopped)
	}
	t.written(i.Objects)
	t.pods(1, i.Change)
	if len(i.Leases) > 0 {
		t.line(1, "Leases")
	}
	for _, l := range i.Leases {
		t.line(2, "%s %s %s: %s", l.IP, l.MAC, l.Hostname, l.Notices)
	}
	if len(i.Streams) > 0 {
		t.line(1, "Streams that end")
	}
	for _, s := range i.Streams {
		t.line(2, "%s", s)
	}
	t.findings(i.Findings)
	if i.Updated != nil {
		t.line(1, "Once its pod templates are updated, one Infra after the other")
		t.pods(2, *i.Updated)
	}
}

func (t *table) findings(all []change.Finding) {
	if len(all) > 0 {
		t.line(1, "Findings")
	}
	for _, f := range all {
		t.line(2, "%s %s: %s", f.Severity, f.Code, f.Reason)
	}
}

func (t *table) objects(all []change.Object) {
	for _, o := range all {
		t.line(2, "%s %s %s", o.Verb, o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		t.fields(3, o.Fields)
	}
}

func (t *table) fields(depth int, all []change.Field) {
	for n, f := range all {
		if n == mostFields {
			t.line(depth, "and %d more: see -o json", len(all)-n)
			return
		}
		t.line(depth, "%s: %s", f.Path, values(f.From, f.To))
	}
}

// values are two values. Of long ones, what both begin with is left out.
func values(from, to string) string {
	was, is := []rune(from), []rune(to)
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	from, to = shortened(was, same), shortened(is, same)
	return cmp.Or(from, "none") + " -> " + cmp.Or(to, "none")
}

func shortened(text []rune, same int) string {
	if len(text) <= widestValue {
		return string(text)
	}
	begin := max(0, same-widestValue/3)
	out := string(text[begin:min(len(text), begin+widestValue)])
	if begin > 0 {
		out = "…" + out
	}
	if begin+widestValue < len(text) {
		out += "…"
	}
	return out
}

// pods says what becomes of pods, and what services and clients notice of that.
func (t *table) pods(depth int, c change.Change) {
	if len(c.Pods) > 0 {
		t.line(depth, "Pods, in this order")
	}
	if c.AwaitsTurn {
		t.line(depth+1, "once no other Infra's pods are being replaced:")
	}
	for n, p := range c.Pods {
		pulls := ""
		if p.Pulls {
			pulls = ", once its images are pulled"
		}
		t.line(depth+1, "%d. %s %s at %s (%s)%s", n+1, p.Verb, p.Component, p.IP, p.Workload, pulls)
	}
	if len(c.Services) > 0 {
		t.line(depth, "Services")
	}
	for _, s := range c.Services {
		lasts := ""
		if s.Seconds > 0 {
			lasts = fmt.Sprintf(" for about %d s", s.Seconds)
		}
		t.line(depth+1, "%-5s %s%s: %s", s.Component, s.Effect, lasts, s.Why)
	}
	if len(c.Clients) > 0 {
		t.line(depth, "Clients")
	}
	for _, n := range c.Clients {
		t.line(depth+1, "%s", n.Says)
	}
}
