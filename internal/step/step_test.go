package step_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/step"
)

var steps = []step.Step{
	{Name: "a", Section: "First", Outcome: step.OK, Says: "it is there"},
	{Name: "b", Section: "First", Outcome: step.Unread, Of: "Infra clusters/c1", Says: "<c1>: you may not", Do: "ask", See: "docs/CHECK.md#your-rights"},
	{Name: "c", Section: "Second", Outcome: step.Skip, Says: "not needed:", YAML: "spec:\n  a: \x1b\n"},
}

func TestStepsAreLines(t *testing.T) {
	g := NewWithT(t)
	var text bytes.Buffer
	g.Expect(step.Lines(&text, steps)).To(Succeed())
	g.Expect(text.String()).To(Equal("First\n  ok      it is there\n  unread  <c1>: you may not\n          do:  ask\n          see: docs/CHECK.md#your-rights\n\nSecond\n  skip    not needed:\n          spec:\n            a: \\x1b\n"))
}

// Programs read this: a change of what is there needs another version.
func TestStepsAreJSON(t *testing.T) {
	g := NewWithT(t)
	var text bytes.Buffer
	g.Expect(step.JSON(&text, steps)).To(Succeed())
	g.Expect(text.String()).To(Equal(`{
  "version": 1,
  "outcome": "unread",
  "steps": [
    {
      "name": "a",
      "section": "First",
      "outcome": "ok",
      "says": "it is there"
    },
    {
      "name": "b",
      "section": "First",
      "outcome": "unread",
      "of": "Infra clusters/c1",
      "says": "<c1>: you may not",
      "do": "ask",
      "see": "docs/CHECK.md#your-rights"
    },
    {
      "name": "c",
      "section": "Second",
      "outcome": "skip",
      "says": "not needed:",
      "yaml": "spec:\n  a: \u001b\n"
    }
  ]
}
`))
}

func TestTheWorstOutcome(t *testing.T) {
	g := NewWithT(t)
	of := func(all ...step.Outcome) step.Outcome {
		var steps []step.Step
		for _, o := range all {
			steps = append(steps, step.Step{Outcome: o})
		}
		return step.Worst(steps)
	}
	g.Expect(of()).To(Equal(step.Skip))
	g.Expect(of(step.OK, step.Skip)).To(Equal(step.OK))
	g.Expect(of(step.Warn, step.OK)).To(Equal(step.Warn))
	g.Expect(of(step.Warn, step.Unread, step.OK)).To(Equal(step.Unread))
	g.Expect(of(step.Fail, step.Unread)).To(Equal(step.Fail))
}

// A condition's message, or a CSR's name in a hosted cluster, may hold anything.
func TestLinesObeyNobody(t *testing.T) {
	g := NewWithT(t)
	var text bytes.Buffer
	g.Expect(step.Lines(&text, []step.Step{{Section: "Worker \x1b[2J", Outcome: step.Fail, Says: "denied:\n  ok      it runs\u202e, naïve…", Do: "wait\r", See: "docs"}})).To(Succeed())
	g.Expect(text.String()).To(Equal("Worker \\x1b[2J\n  fail    denied:\\n  ok      it runs\\u202e, naïve…\n          do:  wait\\r\n          see: docs\n"))
}
