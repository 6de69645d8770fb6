package bfcfg

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
)

// machineConfigPath is where the machine-config-daemon finds what to make of the first boot, e.g. the image that it rebases to.
const machineConfigPath = "/etc/ignition-machine-config-encapsulated.json"

// registryCAPath is where install-dpu-agent.sh looks for the CAs of DPF's bfb-registry.
const registryCAPath = "/etc/dpf/bfb-registry-ca.crt"

// unpackedLimit is what a MachineConfig may have: as much as is downloaded of an ignition. A few KiB of gzip may become gigabytes.
const unpackedLimit = 4 << 20

// hypershift is what HyperShift's nodes get, in spec 3.4, which every RHCOS since 4.14 reads.
func (s Source) hypershift() (types.Config, error) {
	config, found, err := ignition.ParseCompatibleVersion(s.Ignition)
	if err != nil {
		return config, &Problem{IgnitionInvalid, "HyperShift's ignition", fmt.Sprintf("Ignition's parser refuses it: %v (%s): see the NodePool's conditions, and its MachineConfigs", err, strings.TrimSpace(found.String()))}
	}
	return config, nil
}

// target is the ignition of the operating system that is installed on the DPU.
func (s Source) target(config types.Config) ([]byte, error) {
	if err := s.rebase(&config); err != nil {
		return nil, err
	}
	if at, err := url.Parse(s.Registry); s.ZeroTrust && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return nil, &Problem{RegistryInvalid, "DPFOperatorConfig spec.provisioningController.registry", fmt.Sprintf("zero-trust DPUs download DPF's agent from the bfb-registry, and %q is not the http or https URL of one: set its address; without one, Service bfb-registry has to have a node port, and a Node has to be Ready", s.Registry)}
	}
	if err := s.hold(config); err != nil {
		return nil, err
	}
	s.put(&config, "common", commonRows)
	s.put(&config, "target", targetRows)
	if s.ZeroTrust && s.RegistryCA != "" {
		putFile(&config, registryCAPath, 0o644, packed([]byte(s.RegistryCA)))
	}
	if s.PullCA != "" {
		putFile(&config, s.pullCAPath(), 0o644, packed([]byte(s.PullCA)))
	}
	if _, found, err := ignition.Parse(marshalled(config)); err != nil {
		return nil, &Problem{IgnitionInvalid, "HyperShift's ignition", fmt.Sprintf("Ignition's parser refuses it together with what a DPU needs: %v (%s): see the NodePool's MachineConfigs", err, strings.TrimSpace(found.String()))}
	}
	if err := s.putFlavor(&config); err != nil {
		return nil, err
	}
	text := marshalled(config)
	if _, found, err := ignition.Parse(text); err != nil {
		field := "DPUFlavor spec.configFiles"
		for _, entry := range found.Entries {
			field = s.blamed(config, entry.Context.String(), field)
		}
		return nil, &Problem{FlavorInvalid, field, fmt.Sprintf("Ignition's parser refuses this file in the target: %v (%s): correct it or take it out", err, strings.TrimSpace(found.String()))}
	}
	return text, nil
}

// pullCAPath is where the CA of one registry is looked for (containers-certs.d(5)). OpenShift's node-ca removes from /etc/docker/certs.d what the
// hosted cluster does not know.
func (s Source) pullCAPath() string {
	registry, _, _ := strings.Cut(s.MachineOS, "/")
	return "/etc/containers/certs.d/" + registry + "/ca.crt"
}

// blamed is the field of the flavor that has the file at a place in the target, e.g. $.storage.files.36.path.
func (s Source) blamed(config types.Config, place, field string) string {
	var at int
	if n, _ := fmt.Sscanf(place, "$.storage.files.%d.", &at); n == 0 {
		return field
	}
	for i, file := range s.Flavor.Spec.ConfigFiles {
		if file.Path == config.Storage.Files[at].Path {
			return fmt.Sprintf("DPUFlavor spec.configFiles[%d].path", i)
		}
	}
	return field
}

// rebase replaces the image of the machine-config-daemon's first boot.
func (s Source) rebase(config *types.Config) error {
	if s.MachineOS == "" {
		return &Problem{MachineOSMissing, "DPUHCPBridge spec.machineOSImage", "no BlueField image is known for the release: set it"}
	}
	missing := func(why string) error {
		return &Problem{MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, why + ": without it no DPU gets its BlueField image; use a release that HyperShift supports"}
	}
	i := fileAt(config, machineConfigPath)
	if i < 0 {
		return missing("there is no such file")
	}
	contents := &config.Storage.Files[i].Contents
	text, err := unpacked(*contents)
	if err != nil {
		return missing(err.Error())
	}
	var object, spec map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return missing(err.Error())
	}
	if err := json.Unmarshal(object["spec"], &spec); err != nil {
		return missing("spec: " + err.Error())
	}
	if spec == nil { // as JSON's null leaves it
		return missing("its spec is null")
	}
	spec["osImageURL"] = marshalled(s.MachineOS)
	object["spec"] = marshalled(spec)
	*contents = packed(marshalled(object))
	return nil
}

// unpacked is the text of a file in an ignition.
func unpacked(contents types.Resource) ([]byte, error) {
	data, err := dataurl.DecodeString(ptr.Deref(contents.Source, ""))
	if err != nil {
		return nil, err
	}
	if ptr.Deref(contents.Compression, "") != "gzip" {
		return data.Data, nil
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data.Data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zipped, unpackedLimit+1))
	if err == nil && len(text) > unpackedLimit {
		return nil, fmt.Errorf("it has more than %d MiB", unpackedLimit>>20)
	}
	return text, err
}

// marshalled is JSON of what cannot fail to be.
func marshalled(of any) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return text
}
