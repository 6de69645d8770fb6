// Package table prints measurements beside their limits, and fails if one is missed.
package table

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
)

// Table of measurements.
type Table struct {
	rows   *tabwriter.Writer
	missed []string
}

// New is a table that prints to standard output.
func New() *Table {
	t := &Table{rows: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.rows, "WHAT\tVALUE\tWANTED")
	return t
}

// Say adds a row without a limit.
func (t *Table) Say(what string, value any) { fmt.Fprintf(t.rows, "%s\t%v\t\n", what, value) }

// None adds a row that should be zero.
func (t *Table) None(what string, value int) {
	fmt.Fprintf(t.rows, "%s\t%d\t0\n", what, value)
	t.miss(value != 0, what)
}

// Below adds a row that should be below a bound.
func Below[T cmp.Ordered](t *Table, what string, value, bound T) {
	fmt.Fprintf(t.rows, "%s\t%v\t< %v\n", what, value, bound)
	t.miss(value >= bound, what)
}

func (t *Table) miss(is bool, what string) {
	if is {
		t.missed = append(t.missed, what)
	}
}

// End prints the table and the machine's load, and fails if a limit was missed.
func (t *Table) End() error {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	t.Say("load average of 1, 5 and 15 minutes", strings.Join(strings.Fields(string(load))[:3], ", "))
	if err := t.rows.Flush(); err != nil || len(t.missed) == 0 {
		return err
	}
	return fmt.Errorf("not as wanted: %s", strings.Join(t.missed, "; "))
}

// MiB is an amount of memory.
type MiB float64

func (m MiB) String() string { return fmt.Sprintf("%.3g MiB", float64(m)) }

// Rate is a number per second.
type Rate float64

func (r Rate) String() string { return fmt.Sprintf("%.3g", float64(r)) }
