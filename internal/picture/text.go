package picture

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/step"
)

// marks are the cells of the boot wall in a terminal, in ASCII: a log keeps them. Each row says in words where its worker stands.
var marks = map[step.Outcome]string{step.OK: "+", step.Skip: "-", step.Warn: "!", step.Unread: "?", step.Fail: "X", "": "."}

const legend = "+ ok  ! warning, or it waits  X stopped here  ? not read  - does not apply  . not there yet"

// barWidth is that of the pool's bar, in characters.
const barWidth = 50

// Text draws a page for a terminal of 80 columns and more.
func Text(w io.Writer, p Page) error {
	to := &strings.Builder{}
	fmt.Fprintf(to, "Infra %s/%s  %s\n  %s\n\n", p.Namespace, p.Name, p.Ready, step.Plain(p.Says))
	fmt.Fprintf(to, "VLAN %s (%s)\n", p.CIDR, p.Network)
	if err := drawServices(to, p); err != nil {
		return err
	}
	drawPool(to, p.Pool)
	if err := drawWall(to, p); err != nil {
		return err
	}
	if err := drawNames(to, p); err != nil {
		return err
	}
	if err := drawRequests(to, p); err != nil {
		return err
	}
	for i, why := range p.Unread {
		if i == 0 {
			fmt.Fprintln(to)
		}
		fmt.Fprintln(to, "not read:", step.Plain(why))
	}
	for line := range strings.Lines(to.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil { // a table pads its last column
			return err
		}
	}
	return nil
}

func drawServices(to io.Writer, p Page) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, s := range p.Services {
		fmt.Fprintf(table, "  |\n  +-- %s\t%s\t%s\n", s.Name, s.Outcome, said(s))
		for _, i := range s.Instances {
			fmt.Fprintf(table, "  |   %s\t%s\t%s\n", i.IP, map[bool]step.Outcome{true: step.OK, false: step.Fail}[i.Ready], step.Plain(where(i)))
		}
	}
	for _, u := range p.Upstreams {
		fmt.Fprintf(table, "        +-- %s\t%d/%d\t%s\n", u.Name, u.Healthy, u.Total, step.Plain(strings.Join(append(u.Names, nonEmpty(u.Says)...), "  ")))
	}
	fmt.Fprintln(table)
	return table.Flush()
}

// said is empty of a service whose instances say all.
func said(s Service) string {
	if s.Outcome == step.OK {
		return ""
	}
	return step.Plain(s.Says)
}

func where(i Instance) string {
	parts := nonEmpty(i.Says)
	if i.Node != "" {
		parts = append(parts, "on "+i.Node)
	}
	return strings.Join(parts, " ")
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func drawPool(to io.Writer, p Pool) {
	if p.Off != "" {
		fmt.Fprintf(to, "Pool: %s\n\n", step.Plain(p.Off))
		return
	}
	fmt.Fprintf(to, "Pool %s to %s: %s\n  [%s%s]\n\n", p.First, p.Last, p.Counted(), strings.Repeat("#", p.Part(barWidth)), strings.Repeat(" ", barWidth-p.Part(barWidth)))
}

// Counted says how full a pool is.
func (p Pool) Counted() string {
	text := fmt.Sprintf("%d of %d addresses leased", p.Count[Leased], p.Size)
	if p.Size == 0 { // no server is planned with an empty pool
		text = fmt.Sprintf("%d addresses leased; DHCP has not reported of how many", p.Count[Leased])
	}
	for _, use := range []Use{Declined, Reserved} {
		if n := p.Count[use]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, use)
		}
	}
	return text
}

// Part of a length that is leased; at least 1 if anything is.
func (p Pool) Part(length int) int {
	if p.Size <= 0 || p.Count[Leased] == 0 {
		return 0
	}
	return min(length, max(1, length*p.Count[Leased]/p.Size))
}

func drawWall(to io.Writer, p Page) error {
	fmt.Fprintf(to, "Workers: %s\n", p.Counted())
	if len(p.Workers) == 0 {
		return nil
	}
	var seen []string
	for _, s := range p.SeenStages {
		seen = append(seen, s.Title)
	}
	fmt.Fprintf(to, "  stages: %s\n  seen: %s\n  %s\n", strings.Join(p.Stages, " "), strings.Join(seen, ", "), legend)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, w := range p.Workers {
		var cells strings.Builder
		for _, c := range w.Cells {
			cells.WriteString(marks[c])
		}
		cells.WriteString(" ")
		for _, c := range w.Seen {
			cells.WriteString(marks[c])
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", step.Plain(w.Name), w.Address, cells.String(), step.Plain(w.Stands()))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if p.Undrawn > 0 {
		fmt.Fprintf(to, "  %s\n", p.NotDrawn())
	}
	return nil
}

func drawNames(to io.Writer, p Page) error {
	if len(p.Unmatched) == 0 {
		return nil
	}
	fmt.Fprintln(to, "\nServer names that no backend of the proxy has:")
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, u := range p.Unmatched {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", step.Plain(cmp.Or(u.Name, "none")), u.Asked(), step.Plain(strings.Join(u.Workers, " ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if text := p.Admitted(); text != "" {
		fmt.Fprintf(to, "If workers need one, add it to the Infra, here the first; target says where it leads:\n%s\n", text)
	}
	return nil
}

// drawRequests leaves out those that are approved.
func drawRequests(to io.Writer, p Page) error {
	if len(p.Requests) == 0 {
		return nil
	}
	fmt.Fprintln(to, "\nCertificate requests:", p.Decisions())
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, r := range p.Requests {
		if r.Decision != Approved {
			fmt.Fprintf(table, "  %s\t%s\t%s\tasked %s\t%s %s\n", step.Plain(r.Name), step.Plain(r.Host), r.For, r.Asked.UTC().Format("2006-01-02 15:04Z"), r.Decision, step.Plain(r.Why))
		}
	}
	return table.Flush()
}

// Admitted is the YAML for the first name that an endpoint can have.
func (p Page) Admitted() string { return diagnose.Admitted(p.Unmatched) }

// Counted says how many workers are in each state.
func (p Page) Counted() string {
	var parts []string
	for _, s := range States {
		if n := p.Count[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case slices.ContainsFunc(p.Unread, func(why string) bool {
		return strings.HasPrefix(why, leases+": ") || strings.HasPrefix(why, machines+": ")
	}):
		return "none that was read"
	}
	return "none"
}

// NotDrawn says how many workers have no row; empty if all have one.
func (p Page) NotDrawn() string {
	switch p.Undrawn {
	case 0:
		return ""
	case 1:
		return "1 more worker is not drawn: see oooi diagnose"
	}
	return fmt.Sprintf("%d more workers are not drawn: see oooi diagnose", p.Undrawn)
}

// Stands says how far a worker is.
func (w Worker) Stands() string {
	if w.State == Joined {
		return string(Joined)
	}
	return fmt.Sprintf("%s at %s: %s", w.State, w.At, w.Says)
}
