// Package finding is what planning says about what a user wrote: a value with a condition, a reason, a field, and a sentence that says what
// to do. A Go error, by contrast, means that I/O failed.
package finding

import (
	"fmt"
	"strings"
)

// Severity is how severe a finding is.
type Severity int

const (
	// Warning means that everything works: the condition stays True, with this reason and message.
	Warning Severity = iota
	// Failing means that what the finding is about will not work until the user changes it. Everything is applied all the same, so that
	// nothing else needs to be done after the change, and healthy workers are not affected.
	Failing
	// Waiting means that something outside of us must happen first; what runs stays as it is.
	Waiting
	// Refused means that the user must change something; what runs stays as it is.
	Refused
)

// String names the severity.
func (o Severity) String() string { return [...]string{"warning", "failing", "waiting", "refused"}[o] }

// Told is the severity as an admin reads it (docs/reference/findings.md): what must be changed is refused, even if it is applied meanwhile.
func (o Severity) Told() string {
	if o == Failing {
		return Refused.String()
	}
	return o.String()
}

// MarshalText writes what an admin reads.
func (o Severity) MarshalText() ([]byte, error) { return []byte(o.Told()), nil }

// Blocks says whether nothing may be applied.
func (o Severity) Blocks() bool { return o >= Waiting }

// MustMend says whether the user must change something.
func (o Severity) MustMend() bool { return o == Failing || o == Refused }

// Finding is one sentence about one condition.
type Finding struct {
	Condition string
	Reason    string // stable: documented in docs/reference/findings.md
	Message   string
	Severity  Severity
	// Of is the object with the field that the finding is about; zero is the planned object.
	Of Object
	// Field is the path of that field.
	Field string
	// Changes mend it, if there is exactly one way to.
	Changes []Change
}

// Provisioned stands for a condition in findings about creating an Infra from a HostedCluster, which become events on the HostedCluster.
const Provisioned = "Provisioned"

// Builder builds a finding: Refuse("Accepted", "RangeOutsideCIDR").At("spec.…").Say("…").
type Builder struct{ f Finding }

// Warn begins a finding that prevents nothing.
func Warn(condition, reason string) Builder { return begin(condition, reason, Warning) }

// Fail begins a finding about something that will not work, while everything else does.
func Fail(condition, reason string) Builder { return begin(condition, reason, Failing) }

// Wait begins a finding that waits for something outside.
func Wait(condition, reason string) Builder { return begin(condition, reason, Waiting) }

// Refuse begins a finding that the user must act on.
func Refuse(condition, reason string) Builder { return begin(condition, reason, Refused) }

func begin(condition, reason string, o Severity) Builder {
	return Builder{Finding{Condition: condition, Reason: reason, Severity: o}}
}

// At names the field.
func (b Builder) At(field string) Builder {
	b.f.Field = field
	return b
}

// In names the object that has the field.
func (b Builder) In(o Object) Builder {
	b.f.Of = o
	return b
}

// Set adds values that mend the object, by path; nil removes a field. Without values it adds nothing.
func (b Builder) Set(values Values) Builder {
	if len(values) == 0 {
		return b
	}
	return b.Change(Change{b.f.Of, values})
}

// Change adds changes of other objects.
func (b Builder) Change(changes ...Change) Builder {
	b.f.Changes = append(b.f.Changes[:len(b.f.Changes):len(b.f.Changes)], changes...)
	return b
}

// Say ends the finding with its message.
func (b Builder) Say(format string, args ...any) Finding {
	b.f.Message = fmt.Sprintf(format, args...)
	return b.f
}

// About sets the planned object in findings and changes that name none.
func About(planned Object, findings []Finding) []Finding {
	var all []Finding
	for _, f := range findings {
		f.Of = f.Of.or(planned)
		var changes []Change
		for _, c := range f.Changes {
			changes = append(changes, Change{c.Of.or(planned), c.Values})
		}
		f.Changes = changes
		all = append(all, f)
	}
	return all
}

// Worst returns the worst severity among findings on one condition; Warning if there is none.
func Worst(findings []Finding, condition string) Severity {
	worst := Warning
	for _, f := range findings {
		if f.Condition == condition && f.Severity > worst {
			worst = f.Severity
		}
	}
	return worst
}

// Some names the first of a list in a sentence, and how many more there are.
func Some(all []string) string {
	const most = 5
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}
