package bridgecli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpfservices"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Platform is what the upgrade of a bridge's release depends on. What is nil or empty does not exist.
type Platform struct {
	Bridge *dpuv1.DPUHCPBridge
	// HostedCluster is the one of the bridge's name, and Version what it reports of its control plane.
	HostedCluster *hyperv1.HostedCluster
	Version       bridge.ControlPlaneVersion
	// Management is the management cluster's version.
	Management *configv1.ClusterVersion
	// Supported are the minor versions that HyperShift runs, e.g. 4.22, by its own ConfigMap.
	Supported []string
	// Images maps releases to BlueField container images: the data of the operator's ConfigMap ImagesKey.
	Images    map[string]string
	ImagesKey types.NamespacedName
	// Asked is what registries say of the release's image; empty if they are not asked.
	Asked bridge.Answer
	// DPF is the version that DPF's operator reports.
	DPF string
	// Others are all other bridges, whose hosted clusters come before DPF, too; OthersUnread if the caller may not list them.
	Others       []dpuv1.DPUHCPBridge
	OthersUnread bool
}

// State says how far a step of an upgrade is.
type State string

const (
	// Done has nothing left to do.
	Done State = "done"
	// Next is to be done now: its preconditions hold.
	Next State = "next"
	// Underway has begun; wait for its end.
	Underway State = "underway"
	// Blocked lacks a precondition.
	Blocked State = "blocked"
	// Look is for the reader: oooi cannot see whether it is done, and the sentence says where to look.
	Look State = "look"
	// Later waits for an earlier step.
	Later State = "later"
)

// Step is one step of an upgrade.
type Step struct {
	Name  string `json:"step"`
	State State  `json:"state"`
	// Because says what was seen, and what to do.
	Because string `json:"because"`
}

// Upgrade lists what has to be upgraded for a bridge to get to a release, in the order that Red Hat documents for DPF on OpenShift
// (dpf-hcp-provisioner-operator 31ded85b, its page on upgrades), and says of each step whether its preconditions hold.
func (p Platform) Upgrade(to string) []Step {
	target := versionOf(to)
	steps := []Step{p.operator(), p.management(target), p.hyperShift(target), p.hosted(to, target), p.dpf(to), p.dpus(to)}
	waits := false
	for i := range steps {
		if waits && steps[i].State != Done {
			steps[i].State = Later
		}
		waits = waits || !slices.Contains([]State{Done, Look}, steps[i].State)
	}
	return steps
}

// MayStart says whether a bridge may be given the release now.
func MayStart(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Name == hostedCluster && s.State == Next })
}

const hostedCluster = "hosted cluster"

func (p Platform) operator() Step {
	if p.Bridge.Status.ObservedGeneration != p.Bridge.Generation {
		return Step{"oooi", Blocked, "the operator has not seen the newest spec of the bridge: is it running?"}
	}
	return Step{"oooi", Done, "the operator has seen the newest spec; a newer release of oooi comes before all else"}
}

func (p Platform) management(target *version.Version) Step {
	const name = "management cluster"
	if p.Management == nil || len(p.Management.Status.History) == 0 {
		return Step{name, Look, "it reports no ClusterVersion, or you may not read it: see that it runs a version that your HyperShift supports"}
	}
	newest := p.Management.Status.History[0]
	runs, err := version.ParseSemantic(newest.Version)
	switch {
	case newest.State != configv1.CompletedUpdate:
		return Step{name, Underway, fmt.Sprintf("it is being upgraded to %s: wait until oc get clusterversion says that it is complete", newest.Version)}
	case target == nil || err != nil:
		return Step{name, Look, fmt.Sprintf("it runs %s; the release names no version, so see yourself that it is not of a newer minor version", newest.Version)}
	case minor(runs) != minor(target) && runs.LessThan(target):
		return Step{name, Next, fmt.Sprintf("it runs %s: upgrade it to %s first (oc adm upgrade)", newest.Version, minor(target))}
	}
	return Step{name, Done, "it runs " + newest.Version}
}

func (p Platform) hyperShift(target *version.Version) Step {
	const name = "MCE"
	switch all := strings.Join(p.Supported, ", "); {
	case len(p.Supported) == 0:
		return Step{name, Look, "HyperShift's ConfigMap hypershift/supported-versions has no versions, or you may not read it: see in MCE's documentation that it supports the release"}
	case target == nil:
		return Step{name, Look, fmt.Sprintf("HyperShift supports %s; the release names no version: give its tag beside the digest", all)}
	case !slices.Contains(p.Supported, minor(target)):
		return Step{name, Next, fmt.Sprintf("HyperShift supports %s: upgrade MCE to one that supports %s", all, minor(target))}
	default:
		return Step{name, Done, "HyperShift supports " + all}
	}
}

func (p Platform) hosted(to string, target *version.Version) Step {
	from := string(p.Bridge.Spec.OCPReleaseImage)
	blocked := func(because string) Step { return Step{hostedCluster, Blocked, because} }
	switch is := (bridge.Input{Bridge: p.Bridge, HostedCluster: p.HostedCluster, Templates: bridge.Templates{Version: p.Version}, Exists: nobody}); {
	case p.HostedCluster == nil:
		return blocked("there is no HostedCluster yet; see oooi bridge status")
	case !is.Owns(p.HostedCluster):
		return blocked("the HostedCluster of this name is not the bridge's; see oooi bridge status")
	case p.HostedCluster.DeletionTimestamp != nil:
		return blocked("the HostedCluster is being deleted; see oooi bridge status")
	case p.HostedCluster.Spec.Release.Image != from && because(p.Bridge) != "":
		return blocked(fmt.Sprintf("the bridge has ocpReleaseImage %s, and the HostedCluster keeps %s: %s", from, p.HostedCluster.Spec.Release.Image, because(p.Bridge)))
	case is.Rollout() == bridge.Rolling:
		return Step{hostedCluster, Underway, fmt.Sprintf("its control plane is being brought to %s: wait until HostedClusterProgressing is False", from)}
	case is.Rollout() == bridge.Unsaid:
		return Step{hostedCluster, Underway, fmt.Sprintf("HyperShift does not say yet that its control plane runs %s: wait, and see HostedClusterProgressing in oooi bridge status", from)}
	case from == to:
		return Step{hostedCluster, Done, "it runs " + from}
	}
	switch runs := versionOf(from); {
	case runs == nil || target == nil: // HyperShift compares the versions, which it reads in the images
	case target.LessThan(runs) && minor(target) != minor(runs):
		return blocked(fmt.Sprintf("it runs %s, and HyperShift goes back to no older minor version", from))
	case target.Major() == runs.Major() && target.Minor() > runs.Minor()+1:
		return blocked(fmt.Sprintf("it runs %s: go to %d.%d first, because OpenShift skips no minor version", from, runs.Major(), runs.Minor()+1))
	}
	if because := p.lacksImage(to); because != "" {
		return blocked(because)
	}
	if because := because(p.Bridge); because != "" {
		return blocked("the bridge is not ready, so nothing of it is changed: " + because)
	}
	if p.Asked.Reason == bridge.ImageNotFound {
		return blocked(fmt.Sprintf("%s: push the release's BlueField container image, or add the release to ConfigMap %s", p.Asked.Message, p.ImagesKey))
	}
	if p.Asked.Reason != "" {
		return Step{hostedCluster, Next, fmt.Sprintf("its preconditions hold, but whether its BlueField container image is there is not known here (%s), and the hosted cluster keeps its release until the operator finds it: oooi bridge upgrade %s -n %s --to %s", p.Asked.Message, p.Bridge.Name, p.Bridge.Namespace, to)}
	}
	return Step{hostedCluster, Next, fmt.Sprintf("its preconditions hold: oooi bridge upgrade %s -n %s --to %s", p.Bridge.Name, p.Bridge.Namespace, to)}
}

// nobody: a HostedCluster that a former bridge of this name made is this one's, as it is for the operator.
func nobody(types.UID) bool { return false }

func (p Platform) lacksImage(to string) string {
	if own := bridge.OwnImage(p.Bridge); own != "" {
		return fmt.Sprintf("machineOSImage is %s, with which DPUs would be installed after the upgrade too: remove it, or change it together with ocpReleaseImage", own)
	}
	if _, found := bridge.ImageOf(p.Images, to); !found && p.Images[bridge.RepositoryKey] == "" {
		return fmt.Sprintf("no BlueField container image is known for the release: add a key (%s) to ConfigMap %s", strings.Join(bridge.ImageKeys(to), " or "), p.ImagesKey)
	}
	return ""
}

func (p Platform) dpf(to string) Step {
	const name = "DPF"
	is, known := "no DPFOperatorConfig reports a version", strings.Join(dpfservices.Known(), ", ")
	if p.DPF != "" {
		is = "it is " + p.DPF
	}
	if p.Bridge.Spec.ManageDPUServiceTemplates && len(dpfservices.Of(p.DPF)) == 0 {
		state, do := p.toServedDPF(to)
		return Step{name, state, fmt.Sprintf("%s, and oooi has the bridge's DPUServiceTemplates for %s only: %s, or make them yourself and remove manageDPUServiceTemplates%s", is, known, do, p.behind(to))}
	}
	return Step{name, Look, fmt.Sprintf("%s; oooi knows %s: see in its release notes which version of hosted clusters it supports, and upgrade it once they have that one%s", is, known, p.behind(to))}
}

// toServedDPF is what leads from a DPF whose services oooi does not have to one whose it has, and whether that may begin.
func (p Platform) toServedDPF(to string) (State, string) {
	const upgrade = "upgrade DPF to such a version"
	runs, err := version.ParseGeneric(p.DPF)
	switch newer := func(known string) bool { return err == nil && runs.LessThan(version.MustParseGeneric(known)) }; {
	case err != nil:
		return Blocked, "see that DPF's operator runs and reports its version"
	case !slices.ContainsFunc(dpfservices.Known(), newer):
		return Blocked, "take a release of oooi that has them for this one"
	case p.OthersUnread:
		return Look, upgrade
	case p.behind(to) != "":
		return Blocked, upgrade
	}
	return Next, upgrade
}

func (p Platform) dpus(to string) Step {
	const name = "DPUs"
	switch c := meta.FindStatusCondition(p.Bridge.Status.Conditions, dpuv1.ConditionIgnitionConfigured); {
	case string(p.Bridge.Spec.OCPReleaseImage) != to:
		return Step{name, Later, "they keep their release until they are installed anew"}
	case c == nil || c.Status != "True":
		return Step{name, Blocked, "what they are installed with is not ready (IgnitionConfigured); see oooi bridge status"}
	}
	return Step{name, Look, "create a BFB with a name of its own, and name it in spec.dpus.bfb of the DPUDeployment: DPF installs the DPUs anew; keep the old BFB until the last is done"}
}

// versionOf a release image, by its tag; nil if it has none that is a version.
func versionOf(release string) *version.Version {
	for _, key := range bridge.ImageKeys(release) {
		if v, err := version.ParseSemantic(key); err == nil {
			return v
		}
	}
	return nil
}

func minor(v *version.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// StepsTable writes steps for people.
func StepsTable(to io.Writer, steps []Step) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tSTEP\tSTATE\tBECAUSE")
	for i, s := range steps {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", i+1, s.Name, s.State, s.Because)
	}
	return table.Flush()
}
