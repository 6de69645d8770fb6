package picture

import (
	"fmt"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/dpu"
	"github.com/cldmnky/oooi/internal/step"
)

// Overview is the page of all Infras and bridges that its reader may see.
type Overview struct {
	Infras  []Line
	Bridges []Bridge
}

// Line is what is said of one Infra among others.
type Line struct {
	Namespace, Name, CIDR, Leases string
	Ready                         step.Outcome
	Says                          string
}

// Bridge is what is shown of a DPUHCPBridge, with the times at which each of its DPUs came further.
type Bridge struct {
	Namespace, Name string
	Ready           step.Outcome
	Says            string
	DPUs            []dpu.Row
	Requests        []Request
	NotRead         []string
}

// LineOf an Infra.
func LineOf(infra *v1alpha1.Infra) Line {
	l := Line{Namespace: infra.Namespace, Name: infra.Name, CIDR: string(infra.Spec.NetworkConfig.CIDR)}
	l.Ready, l.Says = ready(infra)
	if c := infra.Status.Leases; c != nil {
		l.Leases = fmt.Sprintf("%d of %d", c.Active, c.PoolSize)
	}
	return l
}

// ID and Path of the line's link.
func (l Line) ID() string { return "i-" + l.Namespace + "/" + l.Name }

// Path is relative to the root.
func (l Line) Path() string { return infraPath(l.Namespace, l.Name) }

// Document of the overview. Its sections are always the same: a browser replaces what it has.
func (o Overview) Document() Document {
	return Document{FrameOf("", "", ""), []Section{section("list", o), section("bridges", o)}}
}
