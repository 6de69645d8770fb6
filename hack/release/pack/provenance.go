package pack

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
)

// provenance is an in-toto statement v1 with SLSA's provenance v1 (slsa.dev/spec/v1.0/provenance). Nobody signs it, so it convinces nobody who
// does not trust the place where it is; whoever doubts builds the commit again, and gets the same bytes.
func (r Release) provenance(files []sum) ([]byte, error) {
	type m = map[string]any
	var subjects []any
	for _, f := range files {
		subjects = append(subjects, m{"name": f.name, "digest": m{"sha256": f.digest}})
	}
	return json.MarshalIndent(m{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": m{
			"buildDefinition": m{
				"buildType":            Home + "/blob/" + r.Commit + "/Makefile",
				"externalParameters":   m{"target": "release", "release": r.Version},
				"internalParameters":   m{"go": runtime.Version(), "CGO_ENABLED": "0"},
				"resolvedDependencies": []any{m{"uri": "git+" + Home + "@" + r.Commit, "digest": m{"gitCommit": r.Commit}}},
			},
			"runDetails": m{"builder": m{"id": Home + "/blob/" + r.Commit + "/hack/release/run"}},
		},
	}, "", "  ")
}

// krew is the plugin's manifest for a krew index, with the archives among files.
func (r Release) krew(files map[string][]byte) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: oooi
spec:
  version: %s
  homepage: %s
  shortDescription: Check and debug workers on isolated networks
  description: |
    Checks an installation of oooi, which joins workers on isolated networks to
    OpenShift hosted control planes; finds why a worker does not join; lists
    leases; collects what somebody who helps from afar needs.
  platforms:
`, r.Version, Home)
	for _, arch := range Architectures {
		name := r.name("linux-" + arch + ".tar.gz")
		fmt.Fprintf(&text, `  - selector: {matchLabels: {os: linux, arch: %s}}
    uri: %s/releases/download/%s/%s
    sha256: %s
    files: [{from: kubectl-oooi, to: .}, {from: LICENSE, to: .}]
    bin: kubectl-oooi
`, arch, Home, r.Version, name, hashed(files[name]))
	}
	return []byte(text.String())
}
