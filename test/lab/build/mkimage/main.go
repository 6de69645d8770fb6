// mkimage packs files as an OCI image layout in one tar, which `ctr images import` reads.
//
//	mkimage -o OUT -t NAME:TAG [-user UID:GID] [-links TARGET:DIR:NAME,NAME…] FILE=/PATH…
//
// The first path is the entrypoint. The same files give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"runtime"
	"strings"
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar"

	// nonRoot is the USER of an image that is given no other: numeric, so that runAsNonRoot can be checked.
	nonRoot = "65532:65532"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mkimage: ")
	out := flag.String("o", "", "tar to write")
	ref := flag.String("t", "", "image reference, NAME:TAG")
	user := flag.String("user", nonRoot, "UID:GID of the image's USER")
	links := flag.String("links", "", "TARGET:DIR:NAME,NAME…: symbolic links in DIR to TARGET")
	flag.Parse()
	if err := run(*out, *ref, *user, *links, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(out, ref, user, links string, files []string) error {
	if out == "" || ref == "" || len(files) == 0 {
		return fmt.Errorf("needs -o OUT, -t NAME:TAG and at least one FILE=/PATH")
	}
	l := newLayer()
	for _, f := range files {
		if err := l.addFile(f); err != nil {
			return err
		}
	}
	if err := l.addLinks(links); err != nil {
		return err
	}
	layer, err := l.bytes()
	if err != nil {
		return err
	}
	_, entrypoint, _ := strings.Cut(files[0], "=")
	layout, err := imageLayout(ref, user, entrypoint, layer)
	if err != nil {
		return err
	}
	return os.WriteFile(out, layout, 0o644)
}

// layer is the file system of the image, as a tar.
type layer struct {
	buf  bytes.Buffer
	tar  *tar.Writer
	dirs map[string]bool
}

func newLayer() *layer {
	l := &layer{dirs: map[string]bool{"/": true}}
	l.tar = tar.NewWriter(&l.buf)
	return l
}

func (l *layer) addDir(dir string) error {
	if l.dirs[dir] {
		return nil
	}
	if err := l.addDir(path.Dir(dir)); err != nil {
		return err
	}
	l.dirs[dir] = true
	return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755})
}

func (l *layer) addFile(arg string) error {
	src, dst, ok := strings.Cut(arg, "=")
	if !ok || !path.IsAbs(dst) {
		return fmt.Errorf("%q: want FILE=/PATH", arg)
	}
	content, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if err := l.addDir(path.Dir(dst)); err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: dst[1:], Mode: int64(info.Mode().Perm() | 0o444), Size: int64(len(content))}
	if err := l.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err = l.tar.Write(content)
	return err
}

func (l *layer) addLinks(arg string) error {
	if arg == "" {
		return nil
	}
	part := strings.SplitN(arg, ":", 3)
	if len(part) != 3 {
		return fmt.Errorf("-links %q: want TARGET:DIR:NAME,NAME…", arg)
	}
	target, dir := part[0], part[1]
	if err := l.addDir(dir); err != nil {
		return err
	}
	for _, name := range strings.Split(part[2], ",") {
		link := path.Join(dir, name)
		if link == target || name == "" {
			continue
		}
		if err := l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: link[1:], Linkname: target, Mode: 0o777}); err != nil {
			return err
		}
	}
	return nil
}

func (l *layer) bytes() ([]byte, error) {
	err := l.tar.Close()
	return l.buf.Bytes(), err
}

// The part of the OCI image specification that an import reads.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	runConfig struct {
		User       string
		Entrypoint []string
		Env        []string
		WorkingDir string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	imageConfig struct {
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       runConfig `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
	}
)

func imageLayout(ref, user, entrypoint string, layer []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := &layoutWriter{tar: tar.NewWriter(&buf)}
	layerRef := w.blob(mediaLayer, layer)
	config := w.blobJSON(mediaConfig, imageConfig{
		Architecture: runtime.GOARCH, OS: "linux",
		Config: runConfig{User: user, Entrypoint: []string{entrypoint}, Env: []string{"PATH=/usr/bin:/bin"}, WorkingDir: "/"},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{layerRef.Digest}},
	})
	image := w.blobJSON(mediaManifest, manifest{SchemaVersion: 2, MediaType: mediaManifest, Config: config, Layers: []descriptor{layerRef}})
	image.Annotations = map[string]string{"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref}
	w.fileJSON("index.json", index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{image}})
	w.fileJSON("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	return buf.Bytes(), w.close()
}

// layoutWriter keeps its first error, so that a layout reads as a list of its parts.
type layoutWriter struct {
	tar *tar.Writer
	err error
}

func (w *layoutWriter) blob(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	w.file("blobs/sha256/"+digest, content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (w *layoutWriter) blobJSON(mediaType string, v any) descriptor {
	return w.blob(mediaType, w.marshal(v))
}

func (w *layoutWriter) fileJSON(name string, v any) { w.file(name, w.marshal(v)) }

func (w *layoutWriter) marshal(v any) []byte {
	content, err := json.Marshal(v)
	w.keep(err)
	return content
}

func (w *layoutWriter) file(name string, content []byte) {
	w.keep(w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}))
	_, err := io.Copy(w.tar, bytes.NewReader(content))
	w.keep(err)
}

func (w *layoutWriter) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *layoutWriter) close() error {
	w.keep(w.tar.Close())
	return w.err
}
