package bridge

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/valid"
)

// Reasons for which an image is not known, besides those of the mapping.
const (
	LookingUp            = "LookingUp"
	RegistryUnreachable  = "RegistryUnreachable"
	RegistryUnauthorized = "RegistryUnauthorized"
	ImageNotFound        = "ImageNotFound"
	InvalidReleaseImage  = "InvalidReleaseImage"
)

// imageFound is the reason while a registry has the image.
const imageFound = "Found"

// Lookup is what is to be asked for the bridge; nil if nothing is, or nothing can be.
func (in Input) Lookup() *Lookup {
	if _, mapped := in.mapped(); mapped || OwnImage(in.Bridge) != "" || in.repository() == "" {
		return nil
	}
	want, problem := in.lookup()
	if problem != nil {
		return nil
	}
	return want
}

// lookup is Lookup, or the finding that says why nothing can be asked.
func (in Input) lookup() (*Lookup, *finding.Finding) {
	want, problem := in.asked()
	if problem == nil {
		problem = in.reach(want)
	}
	if problem == nil {
		want.Cache, problem = in.cache(want.Repository)
	}
	return want, problem
}

// asked are the places of a look-up.
func (in Input) asked() (*Lookup, *finding.Finding) {
	const kind = dpuv1.ConditionBlueFieldContainerImageAvailable
	repository, release := in.repository(), string(in.Bridge.Spec.OCPReleaseImage)
	if !valid.Image(repository + ":0") {
		f := finding.Wait(kind, "RepositoryInvalid").At("spec.ocpReleaseImage").
			Say("key %s of ConfigMap %s is no repository with its registry and without a tag: write one, e.g. quay.io/example/rhcos-bluefield", RepositoryKey, in.Settings.Images)
		return nil, &f
	}
	if large := in.largeMirrors(); large != nil {
		return nil, &large[0]
	}
	pull := in.PullSecret
	want := &Lookup{Repository: repository, Images: placesOf(pull, mirrored(repository, tagMirrors(in.TagMirrors)))}
	of, tag, digest := cutImage(release)
	if tag != nil {
		want.Version = Version(*tag)
		return want, nil
	}
	named := mirrored(of, digestMirrors(in.DigestMirrors))
	if registryOf(of) != registryOf(repository) { // the bridge's author chooses that one
		named = without(named, of)
	}
	if want.Digest, want.Releases = digest, placesOf(pull, named); len(named) == 0 {
		f := finding.Wait(kind, InvalidReleaseImage).At("spec.ocpReleaseImage").
			Say("the version of %s is not known, and its registry is not asked, because no administrator has named it: write the tag too, as in %s:4.20.4-multi@sha256:…, or have key %s added to ConfigMap %s", release, of, ImageKeys(release)[0], in.Settings.Images)
		return nil, &f
	}
	return want, nil
}

// largeMirrors reports sets of mirrors that are kept in part, without all of which what is forbidden might be asked, and configuration that does
// not say any more which CAs are trusted.
func (in Input) largeMirrors() (all []finding.Finding) {
	for i := range in.TagMirrors {
		all = append(all, kept.Judge(dpuv1.ConditionBlueFieldContainerImageAvailable, &in.TagMirrors[i])...)
	}
	all = append(all, kept.Judge(dpuv1.ConditionBlueFieldContainerImageAvailable, in.ImageConfig, in.Proxy)...)
	for i := range in.DigestMirrors {
		all = append(all, kept.Judge(dpuv1.ConditionBlueFieldContainerImageAvailable, &in.DigestMirrors[i])...)
	}
	return all
}

// lookedUp is the image that was found, and the finding about it.
func (in Input) lookedUp() (string, finding.Finding) {
	const kind = dpuv1.ConditionBlueFieldContainerImageAvailable
	want, problem := in.lookup()
	if problem != nil {
		return "", *problem
	}
	image := in.Answer.Image
	if image == "" && slices.Contains([]string{"", RegistryUnreachable, Caching, CacheFailed}, in.Answer.Reason) {
		image = in.foundBefore(want)
	}
	if image != "" {
		return image, finding.Warn(kind, imageFound).Say("%s", image)
	}
	said, key := in.Answer, in.Settings.Images
	waits := finding.Wait(kind, cmp.Or(said.Reason, LookingUp)).At("spec.ocpReleaseImage")
	switch said.Reason {
	case "":
		return "", waits.Say("the BlueField container image for %s is looked up in %s", in.Bridge.Spec.OCPReleaseImage, want.Repository)
	case RegistryUnreachable:
		return "", waits.Say("%s; have that mended at the registry, or on the way there; the operator tries again", said.Message)
	case RegistryUnauthorized:
		return "", waits.Say("%s: add a login for it to Secret %s/%s, or correct the one there; some registries also say this of what does not exist; the operator tries again", said.Message, in.Bridge.Namespace, in.Bridge.Spec.PullSecret)
	case ImageNotFound:
		return "", waits.Say("%s: push it, add the release to ConfigMap %s, or set machineOSImage; the operator tries again", said.Message, key)
	case Caching:
		return "", waits.Say("%s", said.Message)
	case CacheNotPulled:
		return "", waits.Say("%s: DPUs would not get it with the login in Secret %s/%s: add one for that registry, or let everybody pull there: oc policy add-role-to-group system:image-puller system:unauthenticated -n %s; the operator tries again", said.Message, in.Bridge.Namespace, in.Bridge.Spec.PullSecret, in.CacheNamespace())
	case InvalidReleaseImage:
		return "", waits.Say("%s: set ocpReleaseImage to a release of OpenShift with its tag, or add the release to ConfigMap %s", said.Message, key)
	}
	return "", waits.Say("%s; the operator tries again", said.Message)
}

// foundBefore is the image that was found for the same release in the same repository, by the bridge's own status: neither a restart of the
// operator, nor a new pull secret, nor a registry that is down takes it away. A forged status
// chooses at most another tag of that repository.
func (in Input) foundBefore(want *Lookup) string {
	image, version := in.SaysItFound(want)
	was := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionBlueFieldContainerImageAvailable)
	if image != "" && (want.Version == version || want.Version == "" && was.ObservedGeneration == in.Bridge.Generation) {
		return image
	}
	return ""
}

// SaysItFound is the image of the bridge's status and its version, if a look-up in the same repository may have found it; of whatever release.
func (in Input) SaysItFound(want *Lookup) (image, version string) {
	was := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionBlueFieldContainerImageAvailable)
	image = in.Bridge.Status.BlueFieldContainerImage
	_, tag, _ := cutImage(image)
	if was == nil || was.Reason != imageFound || !valid.Image(image) || tag == nil || image != want.Found(*tag) {
		return "", ""
	}
	return image, *tag
}
