package preflight

import (
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
)

// misnamed refuses to wait for a HostedCluster that the files do not have, where they have others: its name is a mistake, or a file is missing, and a
// pipeline that asks whether the files work must not go on. Without any HostedCluster the files are about something else, and the Infra waits.
func misnamed(in input.Input, objects render.Objects, findings []finding.Finding) []finding.Finding {
	key, known := in.HostedClusterKey()
	var have []string
	for _, object := range objects {
		if hc, is := object.(*hyperv1.HostedCluster); is {
			have = append(have, hc.Namespace+"/"+hc.Name)
		}
	}
	if !known || len(have) == 0 || slices.Contains(have, key.String()) {
		return findings
	}
	all := slices.Clone(findings)
	for i, f := range all {
		if f.Severity == finding.Waiting && f.Reason == "WaitingForControlPlane" {
			all[i].Severity = finding.Refused
			all[i].Message = fmt.Sprintf("the files have no HostedCluster %s, only %s: correct the name, or give its file", key, finding.Some(have))
		}
	}
	return all
}
