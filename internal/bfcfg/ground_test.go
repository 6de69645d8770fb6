package bfcfg

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/dpf"
)

// identity is of the DPU that the tests render templates for, with the names of DPF's fields (BFCFGData in pkg/bfcfg/bfcfg.go).
type identity struct {
	DPUHostName, DPUName, DPUNamespace, DPUUID, BootstrapKubeconfig string
	ControlPlaneMTU                                                 int
}

var dpu1 = identity{
	DPUHostName: "worker-1-mt2334xz0f9k", DPUName: "worker-1-mt2334xz0f9k", DPUNamespace: "dpf-operator-system",
	DPUUID: "0c1a4c5e-8f0e-4a53-8a3c-0d2f4f5a6b7c", BootstrapKubeconfig: "apiVersion: v1\nkind: Config\n",
}

// source is of the testdata: HyperShift's ignition with a MachineConfig in it, and a flavor.
func source(t *testing.T) Source {
	t.Helper()
	return Source{Ignition: read(t, "testdata/hypershift.ign"), MachineOS: "quay.io/example/rhcos-bluefield:4.22.7", Flavor: flavor(t, read(t, "testdata/flavor.yaml"))}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func flavor(t *testing.T, text []byte) *dpf.DPUFlavor {
	t.Helper()
	out := &dpf.DPUFlavor{}
	if err := yaml.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// with is the source with other config files in its flavor.
func (s Source) with(files ...dpf.ConfigFile) Source {
	s.Flavor = s.Flavor.DeepCopy()
	s.Flavor.Spec.Raw, s.Flavor.Spec.ConfigFiles = nil, files
	return s
}

// installed is what a DPU gets: the live system, and the target as the live system got it.
type installed struct{ live, target types.Config }

// install does what DPF does with a template, and then Ignition on the DPU.
func install(t *testing.T, from Source) installed {
	t.Helper()
	text, err := Template(from)
	if err != nil {
		t.Fatal(err)
	}
	live := parse(t, render(t, text))
	return installed{live, parse(t, []byte(file(t, live, "/var/target.ign")))}
}

func render(t *testing.T, text []byte) []byte {
	t.Helper()
	made, err := template.New("").Funcs(sprig.FuncMap()).Option("missingkey=error").Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := made.Execute(&out, dpu1); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func parse(t *testing.T, text []byte) types.Config {
	t.Helper()
	config, found, err := ignition.Parse(text)
	if err != nil {
		t.Fatalf("%v: %s", err, found)
	}
	return config
}

// file is the text of a file, with what is appended to it.
func file(t *testing.T, config types.Config, at string) string {
	t.Helper()
	i := fileAt(&config, at)
	if i < 0 {
		t.Fatalf("there is no %s", at)
	}
	f := config.Storage.Files[i]
	text := contents(t, f.Contents)
	for _, more := range f.Append {
		text += contents(t, more)
	}
	return text
}

func contents(t *testing.T, of types.Resource) string {
	t.Helper()
	if of.Source == nil {
		return ""
	}
	data, err := dataurl.DecodeString(*of.Source)
	if err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(of.Compression, "") == "" {
		return string(data.Data)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data.Data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
