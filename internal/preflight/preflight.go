// Package preflight says of an Infra, before anything is created, whether its HostedCluster can work on its VLAN, in the
// words that its conditions will have.
package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/render"
)

// Severity tells what will not work from what will, but not well.
type Severity string

const (
	// Refused says that it would not work.
	Refused Severity = "refused"
	// Warning says that it works, with something to know.
	Warning Severity = "warning"
	// Waiting says that it cannot be judged before something is there.
	Waiting Severity = "waiting"
)

// Report is what was found of one Infra.
type Report struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Works     bool      `json:"works"`
	Findings  []Finding `json:"findings"`
	// NotJudged is what neither files nor flags say enough of: nothing found of it is no promise.
	NotJudged []string `json:"notJudged,omitempty"`
}

// Finding is one thing that was found.
type Finding struct {
	Code      string   `json:"code"`
	Severity  Severity `json:"severity"`
	Condition string   `json:"condition"`
	// Object and Field are where the value stands that it is about.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	// YAML puts it right: merge patches, one document for each object. Empty when there is no one way to.
	YAML string `json:"yaml,omitempty"`
	// Anew: the YAML is for the object's own file. One that exists is deleted, and created with it.
	Anew bool `json:"anew,omitempty"`
}

// All judges the Infras of files, and those that annotations of HostedClusters ask for.
func All(objects render.Objects, settings plan.Settings) []Report {
	var all []Report
	whole, made, held := objects.Provisioned()
	for _, h := range held {
		all = append(all, report(h.Infra, asking(h)))
	}
	for _, in := range whole.Inputs(settings) {
		r := report(in.Infra, atSource(in.Infra, append(asking(made[in.Infra]), planning(in)...)))
		r.NotJudged = notJudged(in)
		all = append(all, r)
	}
	return all
}

func notJudged(in plan.Input) (all []string) {
	hc := in.HostedCluster
	if hc != nil && hc.Spec.Platform.Kubevirt != nil && len(in.NodePools) == 0 && len(plan.Permitted(in)) == 0 {
		all = append(all, fmt.Sprintf("whether workers are plugged in well and have addresses enough: the files hold no NodePool of HostedCluster %s/%s", hc.Namespace, hc.Name))
	}
	if len(in.Settings.PodCIDRs) == 0 || len(in.Settings.ServiceCIDRs) == 0 {
		all = append(all, "whether addresses are also the management cluster's: set --pod-cidrs and --service-cidrs")
	}
	return all
}

// asking is what is found of the HostedCluster that asks for an Infra, which has its name.
func asking(r render.Rendering) []finding.Finding {
	if len(r.Findings) == 0 {
		return nil
	}
	return finding.About(endpoint.ObjectNamed(r.Infra.Namespace, r.Infra.Name), r.Findings)
}

// Of judges one Infra.
func Of(in plan.Input) Report { return report(in.Infra, planning(in)) }

// planning tells nothing of what HyperShift has yet to make: before anything is created that is no mistake.
func planning(in plan.Input) []finding.Finding {
	return slices.DeleteFunc(plan.Infra(in).Findings, func(f finding.Finding) bool {
		return f.Outcome == finding.Waiting && in.HostedCluster != nil
	})
}

func report(infra *v1alpha1.Infra, findings []finding.Finding) Report {
	r := Report{Namespace: infra.Namespace, Name: infra.Name, Works: true, Findings: []Finding{}}
	for _, f := range findings {
		r.Works = r.Works && !f.Outcome.Mend()
		r.Findings = append(r.Findings, Finding{
			Code: f.Reason, Severity: severity(f.Outcome), Condition: f.Condition, Object: f.Of.String(), Field: f.Field, Reason: f.Message, YAML: f.YAML(), Anew: anew(f),
		})
	}
	return r
}

// anew: of a HostedCluster's specification, what findings change is immutable (hostedcluster_types.go and kubevirt.go of
// HyperShift's API) or, as credentials, would leave its machines where they are. An Infra's network may only widen.
func anew(f finding.Finding) bool {
	return slices.ContainsFunc(f.Changes, func(c finding.Change) bool {
		_, moved := c.Values[ipam.FieldCIDR]
		return moved || f.Of.Kind == "HostedCluster" && strings.HasPrefix(f.Field, "spec.")
	})
}

func severity(o finding.Outcome) Severity {
	switch {
	case o.Mend():
		return Refused
	case o == finding.Waiting:
		return Waiting
	}
	return Warning
}

// Table writes reports for people: a line for each finding, then what to change.
func Table(to io.Writer, reports []Report) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "INFRA\tSEVERITY\tCODE\tFIELD\tREASON")
	for _, r := range reports {
		infra := r.Namespace + "/" + r.Name
		if len(r.Findings) == 0 {
			fmt.Fprintf(table, "%s\tok\t-\t-\tnothing found\n", infra)
		}
		for _, f := range r.Findings {
			field := strings.TrimSuffix(f.Object+" "+f.Field, " ")
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", infra, f.Severity, f.Code, field, f.Reason)
		}
		for _, what := range r.NotJudged {
			fmt.Fprintf(table, "%s\tnot judged\t-\t-\t%s\n", infra, what)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return changes(to, reports)
}

func changes(to io.Writer, reports []Report) error {
	return errors.Join(
		documents(to, reports, false, "What to change; each document is for: kubectl patch --type merge -f FILE --patch-file FILE"),
		documents(to, reports, true, "What only an object that is made anew takes; each document changes its own file: kubectl patch --local --type merge -f OBJECT --patch-file FILE -o yaml"))
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

// JSON writes reports for programs.
func JSON(to io.Writer, reports []Report) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Infras []Report `json:"infras"`
	}{reports})
}
