package preflight

import (
	"fmt"
	"slices"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/render"
)

// Bridges judges the DPUHCPBridges of files, and the DPUs of their DPUClusters.
func Bridges(objects render.Objects) (all []Report) {
	for _, b := range objects.Bridges() {
		of := finding.Object{APIVersion: dpuv1.GroupVersion.String(), Kind: "DPUHCPBridge", Namespace: b.Bridge.Namespace, Name: b.Bridge.Name}
		r := Report{ofBridge: true, Namespace: of.Namespace, Name: of.Name, Works: true, Findings: []Finding{}, NotJudged: unread(b)}
		all = append(all, r.with(written(append(finding.About(of, ofBridge(b)), b.Facts.Findings(b.DPUs)...))))
	}
	return all
}

// ofBridge are the findings of a bridge. Of a DPUCluster that the files do not have, nobody knows whether it allows the bridge; warnings say what
// works.
func ofBridge(b render.Bridge) []finding.Finding {
	return slices.DeleteFunc(bridge.Of(b.Input).Findings, func(f finding.Finding) bool {
		return f.Severity == finding.Warning || f.Condition == dpuv1.ConditionDPUClusterBound && b.DPUCluster == nil
	})
}

// written leaves out what the files do not have: before anything is created, that is no error. The bridge makes DPUs' templates, too.
func written(all []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(all, func(f finding.Finding) bool { return f.Severity == finding.Waiting })
}

// unread is what the files say nothing about.
func unread(b render.Bridge) (all []string) {
	if b.DPUCluster == nil {
		all = append(all, fmt.Sprintf("whether the bridge can have DPUCluster %s: the files do not contain it", bridge.ClusterKey(b.Bridge)))
	}
	if len(b.Facts.Configs) == 0 {
		all = append(all, "from which bf.cfg template DPF installs DPUs: the files contain no DPFOperatorConfig")
	}
	if len(b.DPUs) == 0 && b.Facts.Deployment == nil {
		all = append(all, "DPUs and their flavors: the files contain no DPU of the DPUCluster, and no DPUDeployment of the bridge (dpuDeploymentRef)")
	}
	return all
}
