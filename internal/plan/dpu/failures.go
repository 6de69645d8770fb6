package dpu

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/step"
)

// Conditions by which our files on a DPU report what fails there (internal/bfcfg/content: dpf-common.sh, pf-monitor.sh). They are no steps of
// DPF's, and their times are by the DPU's clock.
const (
	conditionInstallError = "InstallError"
	conditionPF0LinkDown  = "PF0LinkDown"
	conditionPF1LinkDown  = "PF1LinkDown"
)

// installerReasons are those of an InstallError that only the live system gives, before DPF hears that the OS is installed
// (internal/bfcfg/content/live: install-rhcos-dpf.sh).
var installerReasons = []string{"Hardware", "Ignition", "NVConfig", "RHCOSInstallation"}

// longestMessage of a condition in a sentence: a DPU may report 4096 characters.
const longestMessage = 300

func told(condition string) bool {
	return slices.Contains([]string{conditionInstallError, conditionPF0LinkDown, conditionPF1LinkDown}, condition)
}

// failures are what is wrong with a DPU, and what to do; empty if nothing is. The second port may be without a cable.
func failures(d *dpf.DPU) string {
	var all []string
	if c := reported(d, conditionInstallError); c != nil && holds(d, c) {
		said := fmt.Sprintf("the DPU reports %s: %s: mend that", c.Reason, short(c.Message))
		if lost(d) == nil {
			said += "; if it does not join then, delete the DPU, so that DPF installs it anew"
		}
		all = append(all, said)
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, conditionError); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, fmt.Sprintf("DPF reports %s: %s", c.Reason, short(c.Message)))
	}
	if c := reported(d, conditionPF0LinkDown); c != nil && since(d, dpf.ConditionReady) == nil {
		all = append(all, fmt.Sprintf("the DPU reports %s: %s: see the cable of its first port, and the switch", c.Reason, short(c.Message)))
	}
	return strings.Join(all, "; ")
}

// holds says whether an InstallError is of what a DPU is at now: only an installed system that has started takes one back, and those of older templates
// do not. One that comes after another has the other's time, so that whether DPF has installed the OS since is seen by who complains. Once DPF has seen
// a Ready Node, the DPU's clock is set, too.
func holds(d *dpf.DPU, complaint *metav1.Condition) bool {
	if slices.Contains(installerReasons, complaint.Reason) && since(d, dpf.ConditionOSInstalled) != nil {
		return false
	}
	if away := lost(d); away != nil {
		return complaint.LastTransitionTime.After(away.LastTransitionTime.Time)
	}
	return since(d, dpf.ConditionClusterReady) == nil
}

// reported is a condition that a DPU has reported as True, wherever the version of DPF keeps it.
func reported(d *dpf.DPU, condition string) *metav1.Condition {
	for _, all := range [][]metav1.Condition{d.Status.AgentStatus.Conditions, d.Status.Conditions} {
		if c := meta.FindStatusCondition(all, condition); c != nil {
			if c.Status != metav1.ConditionTrue {
				return nil
			}
			return c
		}
	}
	return nil
}

// short is a message on one line, cut where it is too long for a sentence.
func short(message string) string {
	if runes := []rune(message); len(runes) > longestMessage {
		message = string(runes[:longestMessage]) + "…"
	}
	return step.Plain(message)
}
