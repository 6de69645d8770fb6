package bfcfg

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/dpf"
)

const (
	ovsScript = "/usr/local/bin/dpf-ovs-script.sh"
	// nicMode is the dpuMode of cards whose processors run nothing (doca-platform 26.4, api/provisioning/v1alpha1, NicMode).
	nicMode = "nic"
)

// putFlavor adds what the flavor says to the target.
func (s Source) putFlavor(config *types.Config) error {
	if s.Flavor.Spec.DpuMode == nicMode {
		return &Problem{FlavorRefused, "DPUFlavor spec.dpuMode", "a card in mode nic runs no operating system: use a flavor of another mode"}
	}
	if script := s.Flavor.Spec.OVS.RawConfigScript; script != "" {
		putFile(config, ovsScript, 0o755, packed([]byte(script)))
	}
	for i, file := range s.Flavor.Spec.ConfigFiles {
		if err := putConfigFile(config, fmt.Sprintf("DPUFlavor spec.configFiles[%d]", i), file); err != nil {
			return err
		}
	}
	object, err := flavorYAML(s.Flavor)
	if err != nil {
		return err
	}
	putFile(config, "/etc/dpf/dpuflavor.yaml", 0o644, packed(object))
	return nil
}

// putConfigFile adds a file of the flavor. One that is appended to keeps its permissions, unless the flavor has others.
func putConfigFile(config *types.Config, field string, file dpf.ConfigFile) error {
	if at := file.Path; !path.IsAbs(at) || path.Clean(at) != at {
		return &Problem{FlavorInvalid, field + ".path", fmt.Sprintf("%q is not an absolute path without . and ..: correct it", at)}
	}
	if isEssential(file.Path) {
		return &Problem{FlavorRefused, field + ".path", file.Path + " is needed for a DPU to reach its API: take it out of the flavor"}
	}
	mode, err := strconv.ParseUint(file.Permissions, 8, 12)
	if file.Permissions != "" && err != nil {
		return &Problem{FlavorInvalid, field + ".permissions", fmt.Sprintf("%q is not an octal mode such as 0644: correct it", file.Permissions)}
	}
	if file.Type == dpf.AgentApplied {
		return nil
	}
	switch contents := packed([]byte(file.Raw)); file.Operation {
	case "", "override":
		if file.Permissions == "" {
			mode = 0o644
		}
		putFile(config, file.Path, int(mode), contents)
	case "append":
		i := fileAt(config, file.Path)
		if i < 0 {
			config.Storage.Files = append(config.Storage.Files, types.File{Node: types.Node{Path: file.Path}})
			i = len(config.Storage.Files) - 1
		}
		to := &config.Storage.Files[i]
		to.Append = append(to.Append, contents)
		if file.Permissions != "" {
			to.Mode = ptr.To(int(mode))
		}
	default:
		return &Problem{FlavorInvalid, field + ".operation", fmt.Sprintf("%q is neither override nor append: correct it", file.Operation)}
	}
	return nil
}

// hypershifts are beginnings of paths by which HyperShift lets a kubelet join.
var hypershifts = []string{machineConfigPath, "/etc/kubernetes/", "/var/lib/kubelet/", "/etc/systemd/system/kubelet.service", "/etc/dpf/", "/var/lib/dpf/"}

// Essential are the paths that a flavor may not write, and the beginnings of such paths.
func Essential() []string {
	all := slices.Clone(hypershifts)
	for _, r := range slices.Concat(commonRows, liveRows, targetRows) {
		if !r.is(free) {
			all = append(all, r.path)
		}
	}
	return all
}

// isEssential says whether a DPU would not join without a file as it is.
func isEssential(at string) bool {
	at = strings.Replace(at, "/var/usrlocal/", "/usr/local/", 1) // in RHCOS the second is a link to the first
	if slices.ContainsFunc(hypershifts, func(prefix string) bool { return strings.HasPrefix(at, prefix) }) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(commonRows, liveRows, targetRows), func(r row) bool {
		return !r.is(free) && (at == r.path || r.is(unit) && strings.HasPrefix(at, r.path+".d/"))
	})
}

// flavorYAML is the flavor as DPF's agent reads it on the DPU: with its whole spec, and of its metadata the name.
func flavorYAML(flavor *dpf.DPUFlavor) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": dpf.GroupVersion.String(),
		"kind":       "DPUFlavor",
		"metadata":   map[string]string{"name": flavor.Name, "namespace": flavor.Namespace},
		"spec":       flavor.Spec,
	})
}
