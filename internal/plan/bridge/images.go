package bridge

import (
	"cmp"
	"slices"
	"strings"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/valid"
)

// Tags of OpenShift's releases end in an architecture (4.20.4-multi, 4.20.4-aarch64). A BlueField runs ourArchitectures.
var (
	ourArchitectures   = []string{"-multi", "-aarch64", "-arm64"}
	otherArchitectures = []string{"-x86_64", "-amd64", "-ppc64le", "-s390x"}
)

// RepositoryKey is the mapping's key for the repository that has the images of all releases that the mapping itself does not have. The tag of
// an image there is the release's version (dpf-hcp-provisioner-operator, internal/controller/bfocplookup, 31ded85b).
const RepositoryKey = "repository"

// OwnImage is the image that a bridge names itself; empty if it names none.
func OwnImage(b *dpuv1.DPUHCPBridge) string {
	return string(cmp.Or(b.Spec.MachineOSImage, b.Spec.MachineOSURL))
}

// mapped is the image that the mapping has for the bridge's release.
func (in Input) mapped() (image string, found bool) {
	if in.Mapping == nil {
		return "", false
	}
	return ImageOf(in.Mapping.Data, string(in.Bridge.Spec.OCPReleaseImage))
}

func (in Input) repository() string {
	if in.Mapping == nil {
		return ""
	}
	return strings.TrimSpace(in.Mapping.Data[RepositoryKey])
}

// ImageOf finds the BlueField container image of a release image in a mapping.
func ImageOf(mapping map[string]string, release string) (image string, found bool) {
	for _, key := range ImageKeys(release) {
		if image := strings.TrimSpace(mapping[key]); valid.Image(image) {
			return image, true
		}
	}
	return "", false
}

// ImageKeys are the keys under which a mapping may have a release, in order of precedence: its digest, as sha256-… (a ConfigMap's keys may
// have no colon), then its version.
func ImageKeys(release string) []string {
	_, tag, digest := cutImage(release)
	var keys []string
	if digest != "" {
		keys = append(keys, strings.Replace(digest, ":", "-", 1))
	}
	if tag != nil {
		keys = append(keys, Version(*tag))
	}
	return keys
}

// cutImage is the repository of an image, its tag and its digest; nil and empty where it has none.
func cutImage(image string) (repository string, tag *string, digest string) {
	named, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(named, ":"); i > strings.LastIndex(named, "/") {
		after := named[i+1:]
		return named[:i], &after, digest
	}
	return named, nil, digest
}

// Version is a tag without the architectures at its end.
func Version(tag string) string {
	for {
		shorter := tag
		for _, a := range slices.Concat(ourArchitectures, otherArchitectures) {
			shorter = strings.TrimSuffix(shorter, a)
		}
		if shorter == tag || shorter == "" {
			return tag
		}
		tag = shorter
	}
}
