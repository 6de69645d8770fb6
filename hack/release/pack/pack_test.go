package pack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/hack/release/pack"
)

const commit = "58df5bce443b58df5bce443b58df5bce443b58df"

// program is a binary that is linked with a module, as Make finds one.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", dir+"/program", "./testdata/program")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(dir + "/program")
})

// made is a release of program, for both architectures.
func made(t *testing.T) pack.Release {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	r := pack.Release{Version: "v0.1.0", Commit: commit, When: time.Unix(1764000000, 0).UTC(), Top: "../../..", Dir: t.TempDir()}
	for _, arch := range pack.Architectures {
		file := filepath.Join(r.Dir, "linux-"+arch, "oooi")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, binary, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "oooi-0.1.0.tgz"), []byte("a chart"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.Make(); err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, r pack.Release, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	a, b := made(t), made(t)
	if got, want := read(t, a, "SHA256SUMS"), read(t, b, "SHA256SUMS"); !bytes.Equal(got, want) {
		t.Errorf("the checksums differ:\n%s\n%s", got, want)
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = a.Dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 9 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheImageIsForBothArchitectures(t *testing.T) {
	r := made(t)
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", filepath.Join(r.Dir, "oooi-v0.1.0.oci.tar"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.TrimSpace(string(read(t, r, "oooi-v0.1.0.digest"))); len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != said {
		t.Fatalf("%v in the layout, and %s is said", manifest.Manifests, said)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, m := range images.Manifests {
		has = append(has, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != m.Platform.Architecture || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/oooi"}) {
			t.Errorf("%+v", config)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatal(err, layers)
		}
		text, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if names := listed(t, text); !slices.Equal(names, []string{"oooi"}) {
			t.Errorf("the layer has %v", names)
		}
	}
	if !slices.Equal(has, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("images are for %v", has)
	}
}

func listed(t *testing.T, text io.Reader) (names []string) {
	t.Helper()
	for files := tar.NewReader(text); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if strings.Contains(header.Name, "oooi") && header.Mode != 0o755 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
	}
}

func TestAnArchiveIsAPluginOfKubectl(t *testing.T) {
	r := made(t)
	archive := read(t, r, "oooi-v0.1.0-linux-arm64.tar.gz")
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	if names := listed(t, unzipped); !slices.Equal(names, []string{"LICENSE", "kubectl-oooi", "kubectl_complete-oooi"}) {
		t.Errorf("%v", names)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(read(t, r, "krew.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	sums := string(read(t, r, "SHA256SUMS"))
	for _, p := range manifest.Spec.Platforms {
		if !strings.Contains(sums, p.SHA256+"  "+filepath.Base(p.URI)+"\n") || p.Bin != "kubectl-oooi" {
			t.Errorf("krew would install %+v", p)
		}
	}
	if len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != "v0.1.0" {
		t.Errorf("%+v", manifest)
	}
}

// What the linker put in is what the SBOM lists.
func TestTheSBOMListsTheModules(t *testing.T) {
	r := made(t)
	document, err := spdxjson.Read(bytes.NewReader(read(t, r, "oooi-v0.1.0-linux-amd64.spdx.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "oooi")
	if err := os.WriteFile(self, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	listed, err := exec.Command("go", "version", "-m", self).Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := 0
	for line := range strings.Lines(string(listed)) {
		cells := strings.Fields(line)
		if cells[0] != "dep" {
			continue
		}
		deps++
		purl := "pkg:golang/" + cells[1] + "@" + cells[2]
		found := false
		for _, p := range document.Packages {
			found = found || len(p.PackageExternalReferences) == 1 && p.PackageExternalReferences[0].Locator == purl
		}
		if !found {
			t.Errorf("no package is %s", purl)
		}
	}
	if deps < 2 || len(document.Packages) != deps+2 || len(document.Relationships) != deps+2 {
		t.Errorf("%d modules, %d packages, %d relationships", deps, len(document.Packages), len(document.Relationships))
	}
}

// The statement is judged by in-toto's own types.
func TestTheProvenanceIsAStatementOnEveryFile(t *testing.T) {
	r := made(t)
	statement := &intoto.Statement{}
	if err := protojson.Unmarshal(read(t, r, "oooi-v0.1.0.provenance.json"), statement); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	sums, subjects := string(read(t, r, "SHA256SUMS")), 0
	for _, s := range statement.GetSubject() {
		subjects++
		if !strings.Contains(sums, s.GetDigest()["sha256"]+"  "+s.GetName()+"\n") {
			t.Errorf("%s has another checksum", s.GetName())
		}
	}
	if subjects != strings.Count(sums, "\n")-1 {
		t.Errorf("%d subjects, and\n%s", subjects, sums)
	}
	predicate, err := statement.GetPredicate().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	p := &provenance.Provenance{}
	if err := protojson.Unmarshal(predicate, p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if got := p.GetBuildDefinition().GetResolvedDependencies()[0].GetDigest()["gitCommit"]; got != commit {
		t.Errorf("of commit %q", got)
	}
}

func TestAReleaseIsOfACommit(t *testing.T) {
	for _, r := range []pack.Release{{Version: "v0.1.0", Commit: "58df5bce443b.dirty"}, {Version: "latest", Commit: commit}} {
		if err := r.Make(); err == nil || !strings.Contains(err.Error(), "a release is vN.N.N of a commit") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// The real skopeo pushes it to a registry, which then has it by the digest that the release says, for each architecture.
func TestSkopeoPushesTheImage(t *testing.T) {
	r := made(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/oooi/oooi:v0.1.0"
	push := exec.Command("skopeo", "--insecure-policy", "copy", "--all", "--dest-tls-verify=false", "oci-archive:oooi-v0.1.0.oci.tar", "docker://"+at)
	push.Dir = r.Dir
	if out, err := push.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ref, err := name.ParseReference(at, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Get(ref)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(read(t, r, "oooi-v0.1.0.digest"))); got.Digest.String() != want {
		t.Errorf("the registry has %s, and the release says %s", got.Digest, want)
	}
	for _, arch := range pack.Architectures {
		if _, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}
