package input

import (
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
)

// GuestMetalLB is the hosted cluster's MetalLB, sorted by name.
type GuestMetalLB struct {
	// Objects are those of its operator (metallb.io/v1beta1 MetalLB).
	Objects []GuestMetalLBObject
	// Workloads are its controllers (Deployments) and speakers (DaemonSets).
	Workloads []GuestWorkload
	// Advertisements are its L2Advertisements.
	Advertisements []string
}

// GuestMetalLBObject is an object of kind MetalLB: spec.loadBalancerClass is what its workloads will serve.
type GuestMetalLBObject struct {
	Namespace, Name, Class string
}

// GuestWorkload is a workload that runs MetalLB, and the container that does.
type GuestWorkload struct {
	Kind, Namespace, Name string
	Container             string
	Args                  []string
}

// Installed says whether MetalLB has its controller and speaker, or an operator that creates them.
func (m GuestMetalLB) Installed() bool {
	return len(m.Objects) > 0 || m.runs("Deployment") && m.runs("DaemonSet")
}

func (m GuestMetalLB) runs(kind string) bool {
	return slices.ContainsFunc(m.Workloads, func(w GuestWorkload) bool { return w.Kind == kind })
}

// Class that MetalLB serves: that of its operator's object, else of its controller and speaker if they agree.
func (m GuestMetalLB) Class() string {
	for _, o := range m.Objects {
		if o.Class != "" {
			return o.Class
		}
	}
	some := m.SomeClass()
	if slices.ContainsFunc(m.Workloads, func(w GuestWorkload) bool { return w.class() != some }) {
		return ""
	}
	return some
}

// SomeClass is the first class that one of its workloads serves; empty if none does.
func (m GuestMetalLB) SomeClass() string {
	for _, w := range m.Workloads {
		if class := w.class(); class != "" {
			return class
		}
	}
	return ""
}

// class is the value of flag --lb-class; Go's flags may also have one dash, and the value in the next argument.
func (w GuestWorkload) class() string {
	for i, arg := range w.Args {
		name, value, joined := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case name != "lb-class" || name == arg:
		case joined:
			return value
		case i+1 < len(w.Args):
			return w.Args[i+1]
		}
	}
	return ""
}

// Serving are changes that make MetalLB serve a class: of its operator's objects, else of its workloads.
func (m GuestMetalLB) Serving(class string) []finding.Change {
	var all []finding.Change
	for _, o := range m.Objects {
		of := finding.Object{APIVersion: "metallb.io/v1beta1", Kind: "MetalLB", Namespace: o.Namespace, Name: o.Name}
		all = append(all, finding.Change{Of: of, Values: finding.Values{"spec.loadBalancerClass": class}})
	}
	for _, w := range m.Workloads {
		if len(m.Objects) > 0 || w.class() != "" {
			continue
		}
		of := finding.Object{APIVersion: "apps/v1", Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		container := map[string]any{"name": w.Container, "args": append(slices.Clone(w.Args), "--lb-class="+class)}
		all = append(all, finding.Change{Of: of, Values: finding.Values{"spec.template.spec.containers": []any{container}}})
	}
	return all
}
