package pack

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	_ "embed"
)

const sumsFile = "SHA256SUMS"

// Home is where the source is.
const Home = "https://github.com/cldmnky/oooi"

// Architectures that a release has binaries and an image for.
var Architectures = []string{"amd64", "arm64"}

var (
	version = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	commit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Release is what a release is made of.
type Release struct {
	Version string    // vN.N.N
	Commit  string    // in full
	When    time.Time // of the commit; every time in the files is this one
	Top     string    // the tree
	Dir     string    // has the binaries, as linux-ARCH/oooi, and gets the files
}

// Make writes all files of the release. What is in Dir already, as the chart, is attested too.
func (r Release) Make() error {
	if !version.MatchString(r.Version) || !commit.MatchString(r.Commit) {
		return fmt.Errorf("a release is vN.N.N of a commit: not %q of %q", r.Version, r.Commit)
	}
	digest, err := r.Image(filepath.Join(r.Dir, r.name("oci.tar")))
	if err != nil {
		return err
	}
	files := map[string][]byte{r.name("digest"): []byte(digest + "\n")}
	for _, arch := range Architectures {
		if files[r.name("linux-"+arch+".tar.gz")], err = r.archive(arch); err != nil {
			return err
		}
		if files[r.name("linux-"+arch+".spdx.json")], err = r.sbom(arch); err != nil {
			return err
		}
	}
	files["krew.yaml"] = r.krew(files)
	for name, content := range files {
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return r.attest()
}

// attest writes the provenance of all files, and then the checksums of all, which include it.
func (r Release) attest() error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	text, err := r.provenance(sums)
	if err != nil {
		return err
	}
	if err := r.write(r.name("provenance.json"), text); err != nil {
		return err
	}
	if sums, err = r.sums(); err != nil {
		return err
	}
	var list strings.Builder // as sha256sum -c reads it
	for _, s := range sums {
		fmt.Fprintf(&list, "%s  %s\n", s.digest, s.name)
	}
	return r.write(sumsFile, []byte(list.String()))
}

func (r Release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.Dir, name), content, 0o644) //nolint:gosec // a release is for everybody
}

// name of a file of this release.
func (r Release) name(suffix string) string {
	separator := "-"
	if !strings.HasPrefix(suffix, "linux-") {
		separator = "."
	}
	return "oooi-" + r.Version + separator + suffix
}

func (r Release) binary(arch string) ([]byte, error) {
	return os.ReadFile(r.binaryPath(arch))
}

func (r Release) binaryPath(arch string) string {
	return filepath.Join(r.Dir, "linux-"+arch, "oooi")
}

// complete is what kubectl runs for completions of a plugin (kubernetes/kubectl, pkg/cmd/plugin/plugin_completion.go).
//
//go:embed kubectl_complete-oooi
var complete []byte

// archive has the binary by the name under which kubectl finds a plugin, and its completion.
func (r Release) archive(arch string) ([]byte, error) {
	binary, err := r.binary(arch)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.Top, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	zip := gzip.NewWriter(&text)
	err = writeTar(zip, r.When, []Entry{{"LICENSE", 0o644, license}, {"kubectl-oooi", 0o755, binary}, {"kubectl_complete-oooi", 0o755, complete}})
	err = errors.Join(err, zip.Close())
	return text.Bytes(), err
}

type sum struct{ name, digest string }

// sums are the checksums of all files in Dir, but for their own list. Directories have the binaries, which the archives have too.
func (r Release) sums() (all []sum, err error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() == sumsFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, sum{e.Name(), hashed(content)})
	}
	slices.SortFunc(all, func(a, b sum) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func hashed(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
