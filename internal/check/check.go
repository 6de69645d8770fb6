// Package check decides whether oooi works on a cluster, or can be installed on one, from facts that were read of it: pure. `oooi check`
// prints what it says.
//
// How it looks: internal/step. Plain words (ok, warn, fail, unread, skip) begin each line, so that logs and screen readers keep them; each
// failure says what to do and where the docs explain it: the name of a step is its anchor on docs/CHECK.md.
//
// A step that depends on another that failed is skipped and says so: the first cause is told, not all that follows from it.
package check

import (
	"fmt"
	"strings"

	"github.com/cldmnky/oooi/internal/step"
)

// page explains each step, and rights on it has what a caller needs.
const (
	page   = "docs/CHECK.md#"
	rights = page + "your-rights"
)

// check is one thing to look at; it may have something to say of each of several objects.
type check struct {
	name, section string
	of            func(Facts) []step.Step
}

// The sections, in the order in which they are printed.
const (
	cluster  = "Cluster"
	operator = "Operator"
	infras   = "Infras and bridges"
	install  = "Rights to install"
)

// always are the checks of the cluster, which come before an installation too.
var always = []check{
	{"kubernetes", cluster, kubernetes},
	{"openshift", cluster, openShift},
	{"hypershift", cluster, hyperShift},
	{"multus", cluster, multus},
	{"kubevirt", cluster, kubeVirt},
	{"metallb", cluster, metalLB},
	{"dpf", cluster, dpf},
	{"monitoring", cluster, monitoring},
}

// installed are those of an installation.
var installed = []check{
	{"crds", operator, crds},
	{"operator", operator, deployment},
	{"operator-rights", operator, operatorRights},
	{"leader", operator, leader},
	{"webhook", operator, configuration},
	{"webhook-trust", operator, trust},
	{"webhook-certificate", operator, certificate},
	{"cli-version", operator, cliVersion},
	{"daemon-images", operator, daemonImages},
	{"nodes", infras, nodes},
	{"infra", infras, infraReady},
	{"bridge", infras, bridgeReady},
}

// before are those before an installation.
var before = []check{{"leftovers", install, leftovers}, {"install-rights", install, installRights}}

// Installed says whether an installed oooi works.
func Installed(f Facts) []step.Step { return run(f, always, installed) }

// Before says whether oooi can be installed.
func Before(f Facts) []step.Step { return run(f, always, before) }

func run(f Facts, lists ...[]check) (all []step.Step) {
	for _, list := range lists {
		for _, c := range list {
			for _, s := range c.of(f) {
				s.Name, s.Section = c.name, c.section
				if s.Outcome != step.OK && s.Outcome != step.Skip && s.See == "" {
					s.See = page + c.name
				}
				all = append(all, s)
			}
		}
	}
	return all
}

func ok(says string, args ...any) step.Step {
	return step.Step{Outcome: step.OK, Says: fmt.Sprintf(says, args...)}
}

func skip(says string, args ...any) step.Step {
	return step.Step{Outcome: step.Skip, Says: fmt.Sprintf(says, args...)}
}

func warn(do, says string, args ...any) step.Step {
	return step.Step{Outcome: step.Warn, Says: fmt.Sprintf(says, args...), Do: do}
}

func fail(do, says string, args ...any) step.Step {
	return step.Step{Outcome: step.Fail, Says: fmt.Sprintf(says, args...), Do: do}
}

func unread(what, why string) step.Step {
	do := step.ToRead(why, "have an administrator bind ClusterRole oooi-check to you, or run it as somebody who may")
	return step.Step{Outcome: step.Unread, Says: what + ": " + why, Do: do, See: rights}
}

func one(s step.Step) []step.Step { return []step.Step{s} }

// about names the object of a step.
func about(kind, namespace, name string, s step.Step) step.Step {
	s.Of = kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
	return s
}
