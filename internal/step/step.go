// Package step is how commands that look at many things tell of each: `oooi check` and `oooi diagnose` share it.
//
// A step is one line that begins with its outcome as a word: ok, warn, fail, unread, skip. A screen reader says the word, a log keeps it and
// grep finds it, whatever the terminal's characters and colours are; √, × and ‼ (linkerd check), colours and moved cursors are lost on one
// of these. What is not ok has up to two more lines, indented below it: what to do, and the place in the docs.
//
//	Operator
//	  ok      Deployment oooi-system/oooi-controller-manager has 2 of 2 pods available
//	  fail    nobody leads: Lease oooi-system/oooi-manager was last renewed 5m ago
//	          do:  kubectl -n oooi-system logs deployment/oooi-controller-manager --all-pods
//	          see: docs/CHECK.md#leader
package step

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Outcome is the first word of a step.
type Outcome string

// The outcomes, the worst last.
const (
	Skip   Outcome = "skip" // it does not apply here, or depends on what failed: Says has the reason
	OK     Outcome = "ok"
	Warn   Outcome = "warn"   // it works; somebody should look at it
	Unread Outcome = "unread" // not known: the caller may not read it, or it did not answer
	Fail   Outcome = "fail"   // it does not work
)

// severity orders outcomes.
var severity = []Outcome{Skip, OK, Warn, Unread, Fail}

// MayNot begins, in what says why something is unread, the right that the caller lacks.
const MayNot = "you may not "

// Again is what to do about what is unread for another reason: a right would not help.
const Again = "it is no matter of rights: look at what it says, and run this again"

// ToRead is what to do about what is unread: grant, if a right is missing.
func ToRead(why, grant string) string {
	if strings.Contains(why, MayNot) {
		return grant
	}
	return Again
}

// Step is one thing that was looked at.
type Step struct {
	// Name is what scripts select by, in lower case with dashes. It does not change from version to version.
	Name string `json:"name"`
	// Section is the heading that the step stands under.
	Section string  `json:"section"`
	Outcome Outcome `json:"outcome"`
	// Of is the object that it is about, as Kind namespace/name; empty if it is about none, or several.
	Of string `json:"of,omitempty"`
	// Says is one sentence: what was seen.
	Says string `json:"says"`
	// Do is what mends it: a command, or a sentence. Empty if it is ok.
	Do string `json:"do,omitempty"`
	// See is the page and anchor that explain it. Empty if it is ok.
	See string `json:"see,omitempty"`
	// YAML is what an admin may write into an object, as Says has it; what is in capitals is to be replaced.
	YAML string `json:"yaml,omitempty"`
}

// Read is something that was read, or why it could not be.
type Read[T any] struct {
	Is T
	// Unread is why it is not known, as a sentence; empty if it is.
	Unread string
}

// Worst is the most severe outcome; Skip of no steps.
func Worst(steps []Step) Outcome {
	worst := 0
	for _, s := range steps {
		worst = max(worst, slices.Index(severity, s.Outcome))
	}
	return severity[worst]
}

// Lines writes steps for people. Steps of one section stand together.
func Lines(to io.Writer, steps []Step) error {
	section := ""
	for i, s := range steps {
		if i > 0 && s.Section != section {
			fmt.Fprintln(to)
		}
		if i == 0 || s.Section != section {
			fmt.Fprintln(to, Plain(s.Section))
		}
		section = s.Section
		if err := s.line(to); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) line(to io.Writer) error {
	_, err := fmt.Fprintf(to, "  %-6s  %s\n", s.Outcome, Plain(s.Says))
	if s.Do != "" {
		_, err = fmt.Fprintf(to, "          do:  %s\n", Plain(s.Do))
	}
	if s.See != "" {
		_, err = fmt.Fprintf(to, "          see: %s\n", s.See)
	}
	for line := range strings.Lines(s.YAML) {
		_, err = fmt.Fprintf(to, "          %s\n", Plain(strings.TrimSuffix(line, "\n")))
	}
	return err
}

// Plain is text on one line, with characters that a terminal would act on written as in Go: much of it others have written.
func Plain(text string) string {
	var all strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			all.WriteRune(r)
		} else {
			all.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return all.String()
}

// version of what JSON writes: it rises when a field is removed or changes its meaning, and not when one is added.
const version = 1

// JSON writes steps for programs.
func JSON(to io.Writer, steps []Step) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Version int     `json:"version"`
		Outcome Outcome `json:"outcome"`
		Steps   []Step  `json:"steps"`
	}{version, Worst(steps), steps})
}
