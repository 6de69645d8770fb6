package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cldmnky/oooi/internal/finding"
)

// Table writes reports for people: what the Infras would provide, a line per finding, then what to change.
func Table(to io.Writer, reports []Report) error {
	for _, works := range []bool{true, false} {
		for _, r := range reports {
			if r.Works == works {
				r.outlook(to)
			}
		}
	}
	infras, bridges := byKind(reports)
	err := rows(to, "INFRA", infras)
	if len(infras) > 0 && len(bridges) > 0 {
		fmt.Fprintln(to)
	}
	return errors.Join(err, rows(to, "BRIDGE", bridges), changes(to, reports))
}

// Kind of the object, for the middle of a sentence.
func (r Report) Kind() string {
	if r.ofBridge {
		return "bridge"
	}
	return "infra"
}

func byKind(reports []Report) (infras, bridges []Report) {
	for _, r := range reports {
		if r.ofBridge {
			bridges = append(bridges, r)
		} else {
			infras = append(infras, r)
		}
	}
	return infras, bridges
}

// rows writes a line per finding of the reports on objects of one kind.
func rows(to io.Writer, kind string, reports []Report) error {
	if len(reports) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\tSEVERITY\tCODE\tFIELD\tREASON\n", kind)
	for _, r := range reports {
		name := r.Namespace + "/" + r.Name
		if len(r.Findings) == 0 {
			fmt.Fprintf(table, "%s\tok\t-\t-\tnothing found\n", name)
		}
		for _, f := range r.Findings {
			field := strings.TrimSuffix(f.Object+" "+f.Field, " ")
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, f.Severity.Told(), f.Code, field, f.Reason)
		}
		for _, what := range r.NotJudged {
			fmt.Fprintf(table, "%s\tnot judged\t-\t-\t%s\n", name, what)
		}
	}
	return table.Flush()
}

// outlook says whether it would work, then what it would provide.
func (r Report) outlook(to io.Writer) {
	says := "would work"
	switch {
	case r.Ask != "" && r.Works:
		says = "would work with: " + r.Ask
	case r.Ask != "":
		says = "would not work with these files alone: " + r.Ask
	case !r.Works:
		says = "would not work"
	case slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == finding.Waiting }):
		says = "cannot be judged yet"
	}
	name := r.Namespace + "/" + r.Name
	if r.ofBridge {
		name = "bridge " + name
	}
	fmt.Fprintf(to, "%s %s\n", name, says)
	if s := r.Serves; s != nil {
		rows := append([][2]string{{"network", s.CIDR + " on " + s.Network}}, s.rows()...)
		for _, row := range append(rows, [2]string{"dialled", strings.Join(s.Dials, " ")}) {
			if row[1] != "" {
				fmt.Fprintf(to, "  %-8s %s\n", row[0], row[1])
			}
		}
	}
	fmt.Fprintln(to)
}

func changes(to io.Writer, reports []Report) error {
	return errors.Join(
		documents(to, reports, false, "What to change; each document is for: kubectl patch --type merge -f FILE --patch-file FILE"),
		documents(to, reports, true, "Changes that need a new object; each document changes its own file: kubectl patch --local --type merge -f OBJECT --patch-file FILE -o yaml (OBJECT must contain only that object)"))
}

func documents(to io.Writer, reports []Report, anew bool, heading string) error {
	heading = "\n# " + heading + "\n"
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.YAML == "" || f.Anew != anew {
				continue
			}
			if _, err := fmt.Fprintf(to, "%s---\n# %s of %s/%s\n%s", heading, f.Code, r.Namespace, r.Name, f.YAML); err != nil {
				return err
			}
			heading = ""
		}
	}
	return nil
}

// version of what JSON writes: it rises when a field is removed or changes its meaning, and not when one is added.
const version = 1

// JSON writes reports for programs.
func JSON(to io.Writer, reports []Report) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	infras, bridges := byKind(reports)
	return enc.Encode(struct {
		Version int      `json:"version"`
		Infras  []Report `json:"infras"`
		Bridges []Report `json:"bridges,omitempty"`
	}{version, append([]Report{}, infras...), bridges})
}
