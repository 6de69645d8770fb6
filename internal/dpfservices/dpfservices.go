// Package dpfservices has the services that DPF runs on DPUs of OpenShift, as the specs of DPUServiceTemplates, in one directory for each
// version of DPF. The values are those of the public operator (dpf-hcp-provisioner-operator 31ded85b, internal/controller/dpuservicetemplate).
package dpfservices

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// OVN is the service whose image depends on the hosts, and OVNSince the first release of OpenShift for which its values are.
const (
	OVN      = "ovn"
	OVNSince = "4.22.2"
)

// Service is one that a DPUServiceTemplate of this name is made for.
type Service struct {
	Name string
	Spec map[string]any
}

//go:embed content
var content embed.FS

// Of are the services of a version of DPF, e.g. v26.4.1, by name; none if the version is not known. Patches of a version have the same.
func Of(version string) (all []Service) {
	parts := append(strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3), "")
	known := parts[0] + "." + parts[1]
	if !slices.Contains(Known(), known) {
		return nil
	}
	for _, file := range list(path.Join("content", known)) {
		all = append(all, Service{strings.TrimSuffix(file, ".yaml"), read(path.Join("content", known, file))})
	}
	return all
}

// Known are the versions that Of knows.
func Known() []string { return list("content") }

func list(dir string) (names []string) {
	entries, err := fs.ReadDir(content, dir)
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(file string) (spec map[string]any) {
	text, err := fs.ReadFile(content, file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &spec)
	}
	if err != nil {
		panic(file + ": " + err.Error()) // it is embedded, and tests read all of them
	}
	return spec
}

// WithImage sets the image of OVN: the chart joins repository and tag with a colon, which also makes one of a digest (repository@sha256 and
// its digits). It returns false if the image has neither.
func (s Service) WithImage(image string) bool {
	i := strings.LastIndex(image, ":")
	if i < 1 || strings.Contains(image[i:], "/") {
		return false
	}
	values := s.Spec["helmChart"].(map[string]any)["values"].(map[string]any)
	values["dpuManifests"].(map[string]any)["image"] = map[string]any{"repository": image[:i], "tag": image[i+1:]}
	return true
}
