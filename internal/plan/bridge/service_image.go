package bridge

import (
	configv1 "github.com/openshift/api/config/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/cldmnky/oooi/internal/dpfservices"
	"github.com/cldmnky/oooi/internal/valid"
)

const (
	// ovnComponent is the name of OVN-Kubernetes in a release's list of its images.
	ovnComponent = "ovn-kubernetes"
	// releaseForDPUs ends the tag of a release for the architecture of a BlueField.
	releaseForDPUs = "-aarch64"
)

// OVNLookup is what is to be asked for the image of OVN-Kubernetes on DPUs, which the hosts of a single-arch release do not have; nil if nothing
// is, or nothing can be.
func (in Input) OVNLookup() *Lookup {
	host := in.Services.Host
	if !in.Bridge.Spec.ManageDPUServiceTemplates || in.deployment() == nil || host == nil || in.multiArch() || !sinceRelease(host.Annotations[AnnotationHostRelease]) {
		return nil
	}
	if ovn := in.serviceTemplate(dpfservices.OVN); len(dpfservices.Of(in.runsDPF())) == 0 || ovn != nil && !in.Owns(ovn) {
		return nil // no use is made of it
	}
	want, _ := in.ovnLookup()
	return want
}

// multiArch says whether the hosts' images run on DPUs, too.
func (in Input) multiArch() bool {
	release := in.Services.Release
	return release != nil && release.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti
}

// ovnLookup is OVNLookup, or a sentence that says why nothing can be asked. It asks in the repository of the management cluster's release, which
// its administrator has chosen, and in the mirrors of that. The hosts say which release they run: ClusterVersion is ahead of them during an upgrade.
func (in Input) ovnLookup() (want *Lookup, because string) {
	if in.Services.Release == nil {
		return nil, "there is no ClusterVersion, which names the repository of that"
	}
	repository, _, _ := cutImage(in.Services.Release.Status.Desired.Image)
	version := in.Services.Host.Annotations[AnnotationHostRelease] + releaseForDPUs
	if !valid.Image(repository + ":" + version) {
		return nil, "ClusterVersion names no repository of releases (status.desired.image)"
	}
	if large := in.largeMirrors(); large != nil {
		return nil, large[0].Message
	}
	want = &Lookup{Component: ovnComponent, Repository: repository, Version: version, Releases: placesOf(in.PullSecret, mirrored(repository, tagMirrors(in.TagMirrors)))}
	if problem := in.reach(want); problem != nil {
		return nil, problem.Message
	}
	return want, ""
}

// ovnFound is the image that was found, or a sentence that says why there is none; empty while registries are asked for the first time.
func (in Input) ovnFound() (image, unknown string) {
	if _, because := in.ovnLookup(); because != "" {
		return "", because
	}
	return in.Services.Answer.Image, in.Services.Answer.Message
}

// sinceRelease says whether a release is one that our OVN is for; a release candidate counts as the release.
func sinceRelease(release string) bool {
	is, err := utilversion.ParseGeneric(release)
	return err == nil && is.AtLeast(utilversion.MustParseGeneric(dpfservices.OVNSince))
}
