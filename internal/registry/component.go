package registry

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// references is the file of a release that lists the images of its components. It is in the last layer, which has a few MiB (openshift/oc,
// pkg/cli/admin/release/new.go).
const references = "release-manifests/image-references"

// mostOfList is the size up to which that layer is read.
const mostOfList = 256 << 20

// imageOf a component is what a release lists for it. Layers are read from the last one on, and only until the list is found.
func imageOf(component string) func(name.Reference, ...remote.Option) (string, error) {
	return func(ref name.Reference, options ...remote.Option) (string, error) {
		image, err := imageAt(ref, options...)
		if err != nil {
			return "", err
		}
		files := mutate.Extract(image)
		defer files.Close()
		all := tar.NewReader(files)
		for {
			file, err := all.Next()
			switch {
			case errors.Is(err, io.EOF):
				return "", errNoRelease("has no file " + references)
			case err != nil:
				return "", err
			case path.Clean(file.Name) == references:
				return listed(all, component)
			}
		}
	}
}

// listed is a component's image in a list, which is an ImageStream. Releases name images by their digests.
func listed(list io.Reader, component string) (string, error) {
	var stream struct {
		Spec struct {
			Tags []struct {
				Name string
				From struct{ Name string }
			}
		}
	}
	text, err := io.ReadAll(io.LimitReader(list, mostOfBody))
	if err != nil {
		return "", err
	}
	if json.Unmarshal(text, &stream) != nil {
		return "", errNoRelease("has a file " + references + " that cannot be read")
	}
	for _, tag := range stream.Spec.Tags {
		if tag.Name != component {
			continue
		}
		if _, err := name.NewDigest(tag.From.Name); err != nil {
			break
		}
		return tag.From.Name, nil
	}
	return "", errNoRelease(fmt.Sprintf("lists no image of %s by its digest", component))
}
