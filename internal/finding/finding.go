// Package finding is what planning says about what a user wrote: a value with a home (condition), a name (reason) and a
// sentence that says what to do. A Go error, by contrast, means that I/O failed.
package finding

import "fmt"

// Outcome is how bad a finding is.
type Outcome int

const (
	// OK informs: the condition stays True, with this reason and message.
	OK Outcome = iota
	// Waiting means that something outside has yet to happen; what runs stays as it is.
	Waiting
	// Invalid means that the user must change something; what runs stays as it is.
	Invalid
)

// String names the outcome.
func (o Outcome) String() string { return [...]string{"OK", "Waiting", "Invalid"}[o] }

// Finding is one sentence about one condition.
type Finding struct {
	Condition string
	Reason    string
	Message   string
	Outcome   Outcome
}

// Provisioned is what findings about making an Infra from a HostedCluster are about. It is no condition: they become events
// on the HostedCluster.
const Provisioned = "Provisioned"

// Builder makes a finding read as a sentence: Invalid("Accepted", "RangeOutsideCIDR").Say("…").
type Builder struct{ f Finding }

// Note begins a finding that holds nothing back.
func Note(condition, reason string) Builder { return begin(condition, reason, OK) }

// Wait begins a finding that waits for something outside.
func Wait(condition, reason string) Builder { return begin(condition, reason, Waiting) }

// Wrong begins a finding that the user must act on.
func Wrong(condition, reason string) Builder { return begin(condition, reason, Invalid) }

func begin(condition, reason string, o Outcome) Builder {
	return Builder{Finding{Condition: condition, Reason: reason, Outcome: o}}
}

// Say ends the finding with its message.
func (b Builder) Say(format string, args ...any) Finding {
	b.f.Message = fmt.Sprintf(format, args...)
	return b.f
}

// Worst returns the worst outcome among findings on one condition; OK when there is none.
func Worst(findings []Finding, condition string) Outcome {
	worst := OK
	for _, f := range findings {
		if f.Condition == condition && f.Outcome > worst {
			worst = f.Outcome
		}
	}
	return worst
}
