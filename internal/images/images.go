// Package images says which images an installation pulls, and writes what the tools that mirror them read.
package images

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

// Formats are the kinds of output, by the name that a user writes; those that need a mirror say where it is.
var Formats = map[string]struct {
	NeedsMirror bool
	write       func(List) string
}{
	"list":      {false, List.lines},
	"mapping":   {true, List.mapping},
	"imageset":  {false, List.imageSet},
	"mirrorset": {true, List.mirrorSets},
}

// List is what is pulled, and below which HOST/PATH of a registry the mirror is.
type List struct {
	mirror string
	images []name.Reference
	// unpublished are names without a registry, as the operator's image has before somebody pushes it.
	unpublished []unpublished
}

// unpublished is an image, and the flag that names another one.
type unpublished struct{ image, flag string }

// place is HOST[:PORT][/PATH]. A host has a dot or a port, or it would be read as the first part of a path (distribution/reference).
var place = regexp.MustCompile(`^[a-z0-9-]+((\.[a-z0-9-]+)+(:[0-9]+)?|:[0-9]+)(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// Of reads references of images, the operator's and then Envoy's; those that are below the mirror are there already.
func Of(mirror string, references ...string) (List, error) {
	if mirror != "" && !place.MatchString(mirror) {
		return List{}, fmt.Errorf("%q is no place in a registry: write HOST/PATH or HOST:PORT/PATH, without https:// and without a tag", mirror)
	}
	l := List{mirror: mirror}
	for i, reference := range references {
		image, err := name.ParseReference(reference)
		if err != nil {
			return List{}, fmt.Errorf("the image %q: %w; write HOST/NAME:TAG or HOST/NAME@sha256:DIGEST", reference, err)
		}
		if !strings.Contains(reference, "/") {
			flag := "--image"
			if i > 0 {
				flag = "--envoy-image"
			}
			l.unpublished = append(l.unpublished, unpublished{reference, flag})
			continue
		}
		if mirror == "" || !strings.HasPrefix(full(image), mirror+"/") {
			l.images = append(l.images, image)
		}
	}
	return l, nil
}

// Write is the list in one of the Formats. Each of them takes what begins with # as a comment.
func (l List) Write(format string) string {
	var text strings.Builder
	for _, image := range l.unpublished {
		fmt.Fprintf(&text, "# %s is in no registry: push it to yours, and name it with %s (docs/AIRGAP.md#the-operators-image)\n", image.image, image.flag)
	}
	return text.String() + Formats[format].write(l)
}

// lines are references, one a line.
func (l List) lines() string {
	var text strings.Builder
	for _, image := range l.images {
		text.WriteString(full(image) + "\n")
	}
	return text.String()
}

// mapping is SOURCE=DESTINATION, as `oc image mirror -f` reads it (openshift/oc, pkg/cli/image/mirror/mappings.go). What has a digest gets no tag: it
// is found by its digest.
func (l List) mapping() string {
	var text strings.Builder
	for _, image := range l.images {
		to := l.mirrored(image)
		if tag, is := image.(name.Tag); is {
			to += ":" + tag.TagStr()
		}
		fmt.Fprintf(&text, "%s=%s\n", full(image), to)
	}
	return text.String()
}

// imageSet is what `oc mirror --v2` reads (openshift/oc-mirror, internal/pkg/api/v2alpha1/type_config.go).
func (l List) imageSet() string {
	additional := []any{}
	for _, image := range l.images {
		additional = append(additional, map[string]any{"name": full(image)})
	}
	return document("mirror.openshift.io/v2alpha1", "ImageSetConfiguration", map[string]any{"mirror": map[string]any{"additionalImages": additional}})
}

// mirrorSets send nodes to the mirror: an ImageDigestMirrorSet for images by digest, and an ImageTagMirrorSet for those by tag, which the
// former does not cover (openshift/api, config/v1/types_image_digest_mirror_set.go).
func (l List) mirrorSets() string {
	var byDigest, byTag []any
	for _, image := range l.images {
		entry := map[string]any{"source": repository(image), "mirrors": []any{l.mirrored(image)}}
		into := &byTag
		if _, is := image.(name.Digest); is {
			into = &byDigest
		}
		if !slices.ContainsFunc(*into, func(e any) bool { return e.(map[string]any)["source"] == entry["source"] }) {
			*into = append(*into, entry)
		}
	}
	var sets []string
	for _, set := range []struct {
		kind, field string
		entries     []any
	}{{"ImageDigestMirrorSet", "imageDigestMirrors", byDigest}, {"ImageTagMirrorSet", "imageTagMirrors", byTag}} {
		if len(set.entries) > 0 {
			sets = append(sets, document("config.openshift.io/v1", set.kind,
				map[string]any{"metadata": map[string]any{"name": "oooi"}, "spec": map[string]any{set.field: set.entries}}))
		}
	}
	return strings.Join(sets, "---\n")
}

func document(apiVersion, kind string, fields map[string]any) string {
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	text, err := yaml.Marshal(fields)
	if err != nil {
		panic(err) // maps and texts only
	}
	return string(text)
}

// mirrored is the image's repository at the mirror: its path there is its path at its own registry, as oc-mirror has it too.
func (l List) mirrored(image name.Reference) string {
	return l.mirror + "/" + image.Context().RepositoryStr()
}

func full(image name.Reference) string {
	separator := ":"
	if _, is := image.(name.Digest); is {
		separator = "@"
	}
	return repository(image) + separator + image.Identifier()
}

// repository has Docker Hub's name as nodes write it (containers/image), not that of its API.
func repository(image name.Reference) string {
	registry := image.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io"
	}
	return registry + "/" + image.Context().RepositoryStr()
}
