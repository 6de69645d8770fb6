package bridge

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
)

// FormerCopies names the ImageStreams that the releases have, or had, which the hosted cluster ran before, by HyperShift's own record, and that no
// bridge uses and no key of the mapping names. OpenShift's pruner keeps the image of a tag as long as there is its ImageStream, and removes it,
// with its layers, some time after that is gone (openshift/oc, pkg/cli/admin/prune/imageprune, NewPruner). There are none while a bridge goes from
// one release to another, or a DPU is being installed, from whatever its template was then.
func (in Input) FormerCopies() (all []types.NamespacedName) {
	if in.CacheNamespace() == "" || in.repository() == "" || in.Rollout() != RolledOut {
		return nil
	}
	if in.mayPull(in.Copies.Bridges) || slices.ContainsFunc(in.Copies.Bridges, in.between) {
		return nil
	}
	if version := in.HostedCluster.Status.Version; version != nil {
		for _, update := range version.History {
			all = append(all, in.copiesOf(update.Image, update.Version)...)
		}
	}
	for _, update := range in.Templates.Version.History {
		all = append(all, in.copiesOf(update.Image, update.Version)...)
	}
	used := slices.Concat(in.streams(in.Bridge), in.copiesMapped())
	for i := range in.Copies.Bridges {
		used = append(used, in.streams(&in.Copies.Bridges[i])...)
	}
	return distinct(without(all, used...))
}

// mayPull says whether a DPU is being installed from a template of one of some bridges: once it has joined, its operating system is on its disk,
// whatever else keeps it from being Ready.
func (in Input) mayPull(of []dpuv1.DPUHCPBridge) bool {
	return slices.ContainsFunc(in.Copies.DPUs, func(d dpf.DPU) bool {
		has := func(condition string) bool { return meta.IsStatusConditionTrue(d.Status.Conditions, condition) }
		if d.DeletionTimestamp != nil || has(dpf.ConditionClusterReady) || has(dpf.ConditionReady) {
			return false
		}
		return slices.ContainsFunc(of, func(b dpuv1.DPUHCPBridge) bool { return d.Joins(ClusterKey(&b)) })
	})
}

// former are those of FormerCopies that exist.
func (in Input) former() (all []Object) {
	former := in.FormerCopies()
	for i := range in.Copies.Streams {
		stream := &in.Copies.Streams[i]
		if stream.DeletionTimestamp == nil && slices.Contains(former, types.NamespacedName{Namespace: stream.Namespace, Name: stream.Name}) {
			all = append(all, stream)
		}
	}
	return all
}

// between says whether it is not known of a bridge which image its DPUs get: it has none yet, or there is still a template of another release.
func (in Input) between(b dpuv1.DPUHCPBridge) bool {
	return b.Status.BlueFieldContainerImage == "" || slices.ContainsFunc(in.Templates.Existing, func(t corev1.ConfigMap) bool {
		of := t.Labels[names.LabelBridgeNamespace] == b.Namespace && t.Labels[names.LabelBridge] == b.Name
		return of && t.Annotations[names.AnnotationTemplateRelease] != string(b.Spec.OCPReleaseImage)
	})
}

// Unused names the ImageStreams that OpenShift's registry has made for images of a bridge that goes, and that no other bridge uses and no key of the
// mapping names. That of an image that the bridge names itself is none of them: its author chooses the name, and may have made the copy. Nor is that of
// a release whose image the bridge has not reached: anybody names a release. There are none while a DPU of another bridge is being installed: it may
// pull the image of a release that its bridge no longer has.
func (in Input) Unused() []types.NamespacedName {
	others := slices.DeleteFunc(slices.Clone(in.Copies.Bridges), func(b dpuv1.DPUHCPBridge) bool { return b.UID == in.Bridge.UID || b.DeletionTimestamp != nil })
	if in.mayPull(others) {
		return nil
	}
	var all []types.NamespacedName
	if in.reached() {
		all = in.copiesOf(string(in.Bridge.Spec.OCPReleaseImage), "")
	}
	if OwnImage(in.Bridge) == "" {
		all = append(all, in.copyNamed(in.Bridge.Status.BlueFieldContainerImage)...)
	}
	used := in.copiesMapped()
	for i := range others {
		used = append(used, in.streams(&others[i])...)
	}
	return distinct(without(all, used...))
}

// reached says whether the bridge's pull secret has opened the registry of an image to copy, by its own status: an image is copied once it is found.
func (in Input) reached() bool {
	is := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionBlueFieldContainerImageAvailable)
	return is != nil && slices.Contains([]string{imageFound, Caching, CacheFailed, CacheNotPulled}, is.Reason)
}

// streams are those that a bridge uses: of its release, of the image that it has and of the one that it names. A forged status keeps at most one
// more.
func (in Input) streams(b *dpuv1.DPUHCPBridge) []types.NamespacedName {
	return slices.Concat(in.copiesOf(string(b.Spec.OCPReleaseImage), ""), in.copyNamed(b.Status.BlueFieldContainerImage), in.copyNamed(OwnImage(b)))
}

// copiesOf names the ImageStreams of a release: by its tag, and by its version, if that is known.
func (in Input) copiesOf(release, version string) (all []types.NamespacedName) {
	namespace, repository := in.CacheNamespace(), in.repository()
	if namespace == "" || repository == "" {
		return nil
	}
	versions := []string{version}
	if _, tag, _ := cutImage(release); tag != nil {
		versions = append(versions, Version(*tag))
	}
	for _, version := range versions {
		if version != "" {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: path.Base(repository) + "-" + strings.ToLower(version)})
		}
	}
	return all
}

// copyNamed names the ImageStream of an image, if it is a copy.
func (in Input) copyNamed(image string) []types.NamespacedName {
	namespace, repository := in.CacheNamespace(), in.repository()
	if namespace == "" || repository == "" {
		return nil
	}
	is, _, _ := cutImage(image)
	if has, name := path.Split(is); strings.HasSuffix(has, "/"+namespace+"/") && strings.HasPrefix(name, path.Base(repository)+"-") {
		return []types.NamespacedName{{Namespace: namespace, Name: name}}
	}
	return nil
}

// copiesMapped are those that keys of the mapping name.
func (in Input) copiesMapped() (all []types.NamespacedName) {
	if in.Mapping != nil {
		for _, image := range in.Mapping.Data {
			all = append(all, in.copyNamed(strings.TrimSpace(image))...)
		}
	}
	return all
}

func distinct(all []types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(all, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(all)
}
