package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/step"
)

// LabelVersion on the Lease of the leader is its version, as Version writes it.
const LabelVersion = "app.kubernetes.io/version"

// Version is a version as a label takes it, which has no +.
func Version(v string) string { return strings.NewReplacer("+", "_", "(", "", ")", "").Replace(v) }

// podOf is the pod of a leader's identity, which controller-runtime makes of the host name and a UID (leaderelection.go).
func podOf(identity string) string {
	pod, _, _ := strings.Cut(identity, "_")
	return pod
}

// skewed says whether the operator says another version than this binary's.
func (f Facts) skewed() bool {
	theirs := ""
	if f.Lease.Is != nil {
		theirs = f.Lease.Is.Labels[LabelVersion]
	}
	return theirs != "" && theirs != Version(f.CLI)
}

const theSame = "use the oooi that is in the operator's image, or upgrade the operator to this one"

func cliVersion(f Facts) []step.Step {
	lease, ours := f.Lease.Is, Version(f.CLI)
	switch {
	case f.Lease.Unread != "":
		return one(skip("this oooi is %s; the operator's version is not known: its Lease is not read", f.CLI))
	case lease == nil || f.Deployment.Is != nil && !f.Manager.Elects:
		return one(skip("this oooi is %s; the operator's version is not known, because no leader says it", f.CLI))
	}
	switch theirs := lease.Labels[LabelVersion]; {
	case theirs == "":
		return one(warn(theSame, "this oooi is %s, and the operator says no version: it is older", f.CLI))
	case theirs != ours:
		return one(warn(theSame, "this oooi is %s, and the operator is %s: what they know of each other may differ", f.CLI, theirs))
	}
	return one(ok("this oooi and the operator are both %s", f.CLI))
}

// daemonImages compares the daemons' images with those that the operator would give them now.
func daemonImages(f Facts) []step.Step {
	switch {
	case f.Deployment.Is == nil:
		return one(skip("the daemons' images are not checked: %s", f.absent()))
	case f.Daemons.Unread != "":
		return one(unread("the daemons' images", f.Daemons.Unread))
	case len(f.Daemons.Is) == 0:
		return one(skip("no daemon runs yet"))
	}
	would := []string{f.Manager.Image, f.Manager.Envoy}
	if f.Manager.Overrides {
		would = append(would, f.Overrides...)
	}
	var behind []string
	for _, w := range f.Daemons.Is {
		for _, image := range w.Images {
			if !slices.Contains(would, image) {
				behind = append(behind, fmt.Sprintf("%s %s/%s has %s", w.Kind, w.Namespace, w.Name, image))
				break
			}
		}
	}
	if len(behind) > 0 {
		return one(warn("kubectl annotate statefulset,deployment -A -l app.kubernetes.io/managed-by=oooi hostedcluster.densityops.com/released- (a short interruption of each)",
			"%d of %d workloads run other images than the operator would now (%s, %s): %s", len(behind), len(f.Daemons.Is), f.Manager.Image, f.Manager.Envoy, first(behind)))
	}
	return one(ok("%[1]d of %[1]d workloads run the operator's images", len(f.Daemons.Is)))
}
