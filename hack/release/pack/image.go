// Package pack makes the files of a release of binaries that are already built: an image, archives, and what says how they came to be. The
// same input gives the same bytes.
package pack

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonRoot is the image's user, as in the Containerfile: numeric, so that runAsNonRoot can be checked.
const nonRoot = "65532:65532"

// Entry is a file of an archive or a layer.
type Entry struct {
	Name    string // path, without a leading slash
	Mode    int64
	Content []byte
}

// writeTar writes entries, whose times and owners say nothing of the machine.
func writeTar(to io.Writer, when time.Time, entries []Entry) error {
	out := tar.NewWriter(to)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Mode: e.Mode, Size: int64(len(e.Content)), ModTime: when, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(e.Content); err != nil {
			return err
		}
	}
	return out.Close()
}

// Image writes an OCI layout, as one tar, of an image for each architecture, and returns the digest by which a registry has it.
func (r Release) Image(to string) (digest string, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(to), ".layout")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	list := index{SchemaVersion: 2, MediaType: types.OCIImageIndex, Annotations: r.labels()}
	for _, arch := range Architectures {
		image, err := r.image(arch)
		if err != nil {
			return "", fmt.Errorf("the image for %s: %w", arch, err)
		}
		if err := at.WriteImage(image); err != nil {
			return "", err
		}
		described, err := partial.Descriptor(image)
		if err != nil {
			return "", err
		}
		list.Manifests = append(list.Manifests, descriptor{described.MediaType, described.Digest, described.Size, v1.Platform{OS: "linux", Architecture: arch}})
	}
	hash, err := r.appendIndex(at, list)
	if err != nil {
		return "", err
	}
	return hash.String(), r.tarOf(dir, to)
}

// index is a list of images by architecture, its fields in the order of the OCI specification's own types. skopeo 1.9 writes a list anew in
// that order when it pushes it: in another, the registry would have it by another digest.
type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations"`
}

type descriptor struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    v1.Hash         `json:"digest"`
	Size      int64           `json:"size"`
	Platform  v1.Platform     `json:"platform"`
}

// appendIndex names the list by its release, for skopeo, and as containerd imports it.
func (r Release) appendIndex(at layout.Path, list index) (v1.Hash, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return v1.Hash{}, err
	}
	hash, size, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		return hash, err
	}
	if err := at.WriteBlob(hash, io.NopCloser(bytes.NewReader(text))); err != nil {
		return hash, err
	}
	names := map[string]string{"org.opencontainers.image.ref.name": r.Version, "io.containerd.image.name": "oooi:" + r.Version}
	return hash, at.AppendDescriptor(v1.Descriptor{MediaType: types.OCIImageIndex, Digest: hash, Size: size, Annotations: names})
}

// image is one static binary: no shell, no libraries, and no certificates, since nodes and pods trust what is mounted.
func (r Release) image(arch string) (v1.Image, error) {
	binary, err := r.binary(arch)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	if err := writeTar(&files, r.When, []Entry{{"oooi", 0o755, binary}}); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: r.When}
	config.Config = v1.Config{User: nonRoot, Entrypoint: []string{"/oooi"}, WorkingDir: "/", Labels: r.labels()}
	return mutate.ConfigFile(image, config)
}

// labels are those of the OCI image specification.
func (r Release) labels() map[string]string {
	const of = "org.opencontainers.image."
	return map[string]string{
		of + "source": Home, of + "version": r.Version, of + "revision": r.Commit, of + "licenses": "Apache-2.0", of + "title": "oooi",
		of + "created": r.When.Format(time.RFC3339),
	}
}

// tarOf packs a directory.
func (r Release) tarOf(dir, to string) error {
	var entries []Entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		entries = append(entries, Entry{name, 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := writeTar(&text, r.When, entries); err != nil {
		return err
	}
	return os.WriteFile(to, text.Bytes(), 0o644) //nolint:gosec // a release is for everybody
}
