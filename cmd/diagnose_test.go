package cmd

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNothingIsDiagnosedWithoutANameOrACluster(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name":             {},
		"write text or json":        {"c1", "-o", "yaml"},
		"unknown flag: --nonsense":  {"c1", "--nonsense"},
		"none is in the kubeconfig": {"c1"},
	} {
		t.Run(says, func(t *testing.T) { cannotBegin(t, says, append([]string{"diagnose"}, args...)) })
	}
}

// A worker that is not found may be one that the caller may not read.
func TestAWorkerThatIsNotFoundMayBeUnread(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nobody("clusters", "w1", map[string]bool{"virtual machines: ": false, "leases: ": false})).To(MatchError(
		"no Infra in namespace clusters is called w1, and no worker of one: choose the Infra's namespace with -n"))
	g.Expect(nobody("clusters", "w1", map[string]bool{"virtual machines: you may not list virtualmachines.kubevirt.io in namespace clusters-c1": true, "leases: ": false})).To(MatchError(
		"no Infra in namespace clusters is called w1, and no worker that was read; not read were virtual machines: you may not list virtualmachines.kubevirt.io in namespace clusters-c1"))
}
