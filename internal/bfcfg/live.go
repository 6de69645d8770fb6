package bfcfg

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"sigs.k8s.io/yaml"
)

// live is the template: the ignition of the system that installs the target, in which DPF fills in the DPU.
func (s Source) live(target []byte, passwd types.Passwd) ([]byte, error) {
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	s.put(&config, "common", commonRows)
	s.put(&config, "live", liveRows)
	object, err := flavorYAML(s.Flavor)
	if err == nil {
		object, err = yaml.YAMLToJSON(object)
	}
	if err != nil {
		return nil, err
	}
	putFile(&config, "/etc/dpf/dpuflavor.json", 0o644, packed(object))
	putFile(&config, "/var/target.ign", 0o600, packed(target))
	text, err := json.Marshal(struct { //nolint:gosec // Passwd has SSH keys and hashes, as HyperShift's ignition, and goes where that goes
		types.Config
		Passwd json.RawMessage `json:"passwd"`
	}{config, untemplated(marshalled(passwd))})
	return append(text, '\n'), err
}

// untemplated is JSON that says the same, and in which no action of a template begins. Outside of strings no brace follows another.
func untemplated(text json.RawMessage) json.RawMessage {
	return bytes.ReplaceAll(text, []byte("{{"), []byte(`\u007b\u007b`))
}

// largest is what DPF fills in at most, and a kubeconfig of the usual size (BFCFGData in pkg/bfcfg/bfcfg.go).
var largest = struct{ DPUHostName, DPUName, DPUNamespace, DPUUID, BootstrapKubeconfig string }{
	DPUHostName:         strings.Repeat("h", 63),
	DPUName:             strings.Repeat("n", 253),
	DPUNamespace:        strings.Repeat("s", 63),
	DPUUID:              strings.Repeat("0", 36),
	BootstrapKubeconfig: strings.Repeat("k", 8<<10),
}

// rendered is what DPF makes of the template, and is an ignition. Both fail for faults of ours only.
func rendered(text []byte) ([]byte, error) {
	b64enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) } // as of sprig, which DPF has
	made, err := template.New("").Funcs(template.FuncMap{"b64enc": b64enc}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := made.Execute(&out, largest); err != nil {
		return nil, err
	}
	if _, found, err := ignition.Parse(out.Bytes()); err != nil {
		return nil, fmt.Errorf("live ignition: %w: %s", err, found)
	}
	return out.Bytes(), nil
}
