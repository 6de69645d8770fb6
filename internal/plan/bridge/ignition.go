package bridge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// image is that of the DPUs' operating system: the user's own, or else the mapping's for the release, or else the one that is found for it.
func (in Input) image(p *Plan) string {
	const kind = dpuv1.ConditionBlueFieldContainerImageAvailable
	key, release := in.Settings.Images, string(in.Bridge.Spec.OCPReleaseImage)
	image, mapped := in.mapped()
	switch own := OwnImage(in.Bridge); {
	case own != "":
		p.Find(finding.Warn(kind, "MachineOSImage").Say("machineOSImage is %s, which overrides ConfigMap %s", own, key))
		return own
	case in.Mapping == nil:
		p.Find(finding.Wait(kind, "MappingNotFound").At("spec.ocpReleaseImage").Say("ConfigMap %s, which has BlueField container images of releases or the repository of all, does not exist: create it, or set machineOSImage", key))
	case mapped:
		p.Find(finding.Warn(kind, "Mapped").Say("%s", image))
		return image
	case in.repository() == "":
		p.Find(finding.Wait(kind, "ImageNotMapped").At("spec.ocpReleaseImage").Say("ConfigMap %s has no BlueField container image for %s: add a key with the release's version or digest, or key %s, or set machineOSImage", key, release, RepositoryKey))
	default:
		image, f := in.lookedUp()
		p.Find(f)
		return image
	}
	return ""
}

// tagged says that a release is for another architecture, by its tag, as long as HyperShift has not read the release.
func (in Input) tagged() []finding.Finding {
	release, pool := string(in.Bridge.Spec.OCPReleaseImage), in.pool()
	if pool != nil && pool.Spec.Release.Image == release && condition(pool.Status.Conditions, hyperv1.NodePoolValidArchPlatform) != nil {
		return nil
	}
	return Tagged(release)
}

// Tagged says that a release is for another architecture, by its tag alone.
func Tagged(release string) []finding.Finding {
	named, _, _ := strings.Cut(release, "@")
	if !slices.ContainsFunc(otherArchitectures, func(end string) bool { return strings.HasSuffix(named, end) }) {
		return nil
	}
	return one(finding.Fail(dpuv1.ConditionReady, "ReleaseNotForARM64").At("spec.ocpReleaseImage").
		Say("the tag of %s names neither a multi-arch nor an arm64 release, but a BlueField is aarch64: set ocpReleaseImage to such a release", release))
}

// refusedPool reports what HyperShift refuses in the NodePool and only the user can mend: a release without aarch64, or a MachineConfig.
func (in Input) refusedPool() (all []finding.Finding) {
	pool := in.pool()
	if pool == nil {
		return nil
	}
	for _, of := range []struct{ theirs, ours, reason, hint string }{
		{hyperv1.NodePoolValidArchPlatform, dpuv1.ConditionReady, "ReleaseNotForARM64", "a BlueField is aarch64: set ocpReleaseImage to a multi-arch or arm64 release"},
		{hyperv1.NodePoolValidReleaseImageConditionType, dpuv1.ConditionReady, "ReleaseRefused", "set ocpReleaseImage to one that HyperShift accepts"},
		{hyperv1.NodePoolValidMachineConfigConditionType, dpuv1.ConditionIgnitionConfigured, "MachineConfigRefused", "see the NodePool"},
	} {
		if c := condition(pool.Status.Conditions, of.theirs); c != nil && c.Status == "False" {
			all = append(all, finding.Fail(of.ours, of.reason).Say("HyperShift refuses the NodePool (%s): %s; %s", c.Reason, c.Message, of.hint))
		}
	}
	return all
}

func condition(all []hyperv1.NodePoolCondition, kind string) *hyperv1.NodePoolCondition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}

// Mirrored are the conditions of its HostedCluster that a bridge copies, each with HyperShift's name.
var Mirrored = []struct{ Ours, Theirs string }{
	{dpuv1.ConditionHostedClusterAvailable, string(hyperv1.HostedClusterAvailable)},
	{dpuv1.ConditionHostedClusterProgressing, string(hyperv1.HostedClusterProgressing)},
	{dpuv1.ConditionHostedClusterDegraded, string(hyperv1.HostedClusterDegraded)},
	{dpuv1.ConditionInfrastructureReady, string(hyperv1.InfrastructureReady)},
	{dpuv1.ConditionKubeAPIServerAvailable, string(hyperv1.KubeAPIServerAvailable)},
	{dpuv1.ConditionEtcdAvailable, string(hyperv1.EtcdAvailable)},
	{dpuv1.ConditionValidReleaseInfo, string(hyperv1.ValidReleaseInfo)},
	{dpuv1.ConditionIgnitionEndpointAvailable, string(hyperv1.IgnitionEndpointAvailable)},
	{dpuv1.ConditionIgnitionServerValidReleaseInfo, string(hyperv1.IgnitionServerValidReleaseInfo)},
	{dpuv1.ConditionValidReleaseImage, string(hyperv1.ValidReleaseImage)},
	{dpuv1.ConditionEtcdRecoveryActive, string(hyperv1.EtcdRecoveryActive)},
	{dpuv1.ConditionHostedClusterRestoredFromBackup, string(hyperv1.HostedClusterRestoredFromBackup)},
	{dpuv1.ConditionDataPlaneConnectionAvailable, string(hyperv1.DataPlaneConnectionAvailable)},
}

// Mirror is what the HostedCluster says for each of Mirrored; nothing if there is no HostedCluster of ours.
func (in Input) Mirror() (all []metav1.Condition) {
	hc := in.cluster()
	if hc == nil {
		return nil
	}
	for _, m := range Mirrored {
		c := metav1.Condition{Type: m.Ours, Status: metav1.ConditionUnknown, Reason: dpuv1.ReasonNotReported, Message: "the HostedCluster does not report " + m.Theirs}
		if theirs := meta.FindStatusCondition(hc.Status.Conditions, m.Theirs); theirs != nil {
			c.Status, c.Reason, c.Message = theirs.Status, theirs.Reason, theirs.Message
		}
		all = append(all, c)
	}
	return all
}
