package bfcfg

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
)

// machineConfigPath is where the machine-config-daemon finds what to make of the first boot, e.g. the image that it rebases to.
const machineConfigPath = "/etc/ignition-machine-config-encapsulated.json"

// hypershift is what HyperShift's nodes get, in spec 3.4, which every RHCOS since 4.14 reads.
func (s Source) hypershift() (types.Config, error) {
	config, found, err := ignition.ParseCompatibleVersion(s.Ignition)
	if err != nil {
		return config, &Problem{IgnitionInvalid, "HyperShift's ignition", fmt.Sprintf("Ignition's parser refuses it: %v: see the NodePool's conditions, and its MachineConfigs (%s)", err, found)}
	}
	return config, nil
}

// target is the ignition of the operating system that is installed on the DPU.
func (s Source) target(config types.Config) ([]byte, error) {
	if err := s.rebase(&config); err != nil {
		return nil, err
	}
	if s.ZeroTrust && s.Registry == "" {
		return nil, &Problem{RegistryMissing, "DPFOperatorConfig spec.provisioningController.registry", "zero-trust DPUs download DPF's agent from the bfb-registry, whose address is unknown: set it"}
	}
	s.put(&config, "common", commonRows)
	s.put(&config, "target", targetRows)
	if err := s.putFlavor(&config); err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	if _, found, err := ignition.Parse(text); err != nil {
		return nil, &Problem{FlavorInvalid, "DPUFlavor spec.configFiles", fmt.Sprintf("Ignition's parser refuses the target with these files: %v (%s)", err, found)}
	}
	return text, nil
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
	spec["osImageURL"] = marshalled(s.MachineOS)
	object["spec"] = marshalled(spec)
	*contents = packed(marshalled(object))
	return nil
}

// unpacked is the text of a file in an ignition.
func unpacked(contents types.Resource) ([]byte, error) {
	url, err := dataurl.DecodeString(ptr.Deref(contents.Source, ""))
	if err != nil {
		return nil, err
	}
	if ptr.Deref(contents.Compression, "") != "gzip" {
		return url.Data, nil
	}
	zipped, err := gzip.NewReader(bytes.NewReader(url.Data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zipped)
}

// marshalled is JSON of what cannot fail to be.
func marshalled(of any) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return text
}
