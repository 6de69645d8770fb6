package bfcfg

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cldmnky/oooi/internal/dpf"
)

func TestTheLiveSystemHasTheIdentityOfTheDPU(t *testing.T) {
	zeroTrust := source(t)
	zeroTrust.ZeroTrust, zeroTrust.Registry = true, "http://192.0.2.10:30080/"
	for mode, from := range map[string]Source{"trusted": source(t), "zero-trust": zeroTrust} {
		live := install(t, from).live
		if got := file(t, live, "/etc/hostname"); got != dpu1.DPUHostName+"\n" {
			t.Errorf("hostname %q", got)
		}
		want := fmt.Sprintf("DPUName=%s\nDPUNamespace=%s\nDPUUID=%s\nDPUMode=%s\n", dpu1.DPUName, dpu1.DPUNamespace, dpu1.DPUUID, mode)
		if got := file(t, live, "/etc/dpf/environment"); got != want {
			t.Errorf("environment %q", got)
		}
	}
	if got := file(t, install(t, zeroTrust).live, "/var/lib/dpf/dpuagent/bootstrap-kubeconfig"); got != dpu1.BootstrapKubeconfig {
		t.Errorf("kubeconfig %q", got)
	}
}

// DPF looks for these words in bf.cfg.
func TestDPFFindsItsFunctionsInTheText(t *testing.T) {
	text, err := Template(source(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"bfb_pre_install", "bfb_modify_os", "bfb_post_install"} {
		if !bytes.Contains(text, []byte(word)) {
			t.Errorf("%s is missing", word)
		}
	}
	if !bytes.HasSuffix(text, []byte("}\n")) {
		t.Error("the text does not end with a newline")
	}
}

// The testdata has actions of templates in an SSH key, in HyperShift's files and in the flavor. Those that DPF cannot execute fail render.
func TestWhatIsNotOursIsNotRendered(t *testing.T) {
	dpu := install(t, source(t))
	if got, want := string(dpu.live.Passwd.Users[0].SSHAuthorizedKeys[0]), "admin@{{.DPUName}}{{{"; !strings.HasSuffix(got, want) {
		t.Errorf("the SSH key is %q, not …%s", got, want)
	}
	for at, want := range map[string]string{"/etc/kubernetes/kubeconfig": "{{ .NotOurs }}", ovsScript: "{{ .NotOurs }}", "/etc/mellanox/mlnx-sf.conf": "{{ .NotOursEither }}"} {
		if got := file(t, dpu.target, at); !strings.Contains(got, want) {
			t.Errorf("%s is %q, without %s", at, got, want)
		}
	}
}

func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	text, err := Template(source(t))
	if err != nil {
		t.Fatal(err)
	}
	other := source(t)
	other.Flavor.Spec.Raw = []byte(strings.Replace(string(other.Flavor.Spec.Raw), `"dpuMode":"dpu",`, "", 1))
	other.Flavor.Spec.Raw = append(bytes.TrimSuffix(other.Flavor.Spec.Raw, []byte("}")), `,"dpuMode":"dpu"}`...)
	for _, from := range []Source{source(t), other} {
		if again, err := Template(from); err != nil || !bytes.Equal(text, again) {
			t.Errorf("another text of %d bytes, not %d (%v)", len(again), len(text), err)
		}
	}
}

func TestADPUGetsTheWholeSpecOfItsFlavor(t *testing.T) {
	dpu := install(t, source(t))
	for _, text := range []string{file(t, dpu.target, "/etc/dpf/dpuflavor.yaml"), file(t, dpu.live, "/etc/dpf/dpuflavor.json")} {
		got := flavor(t, []byte(text))
		if got.APIVersion != "provisioning.dpu.nvidia.com/v1alpha1" || got.Kind != "DPUFlavor" || got.Name != "hbn-ovnk" || got.UID != "" {
			t.Errorf("it is %s %s %s, UID %q", got.APIVersion, got.Kind, got.Name, got.UID)
		}
		if spec := string(got.Spec.Raw); !strings.Contains(spec, `"dpuResources":{"cpu":16,"memory":"28Gi"}`) || !strings.Contains(spec, `"nvconfig"`) {
			t.Errorf("spec %s", spec)
		}
	}
}

func TestWhatMakesATemplateImpossible(t *testing.T) {
	big := make([]byte, 400<<10)
	for i := range big {
		big[i] = byte(rand.IntN(256))
	}
	ignition := func(old, new string) func(*Source) {
		return func(s *Source) {
			if !bytes.Contains(s.Ignition, []byte(old)) {
				t.Fatalf("the testdata has no %s", old)
			}
			s.Ignition = bytes.ReplaceAll(s.Ignition, []byte(old), []byte(new))
		}
	}
	files := func(files ...dpf.ConfigFile) func(*Source) { return func(s *Source) { *s = s.with(files...) } }
	essential := func(at string) func(*Source) {
		return files(dpf.ConfigFile{Path: "/etc/motd"}, dpf.ConfigFile{Path: at, Operation: "append"})
	}
	const first = "DPUFlavor spec.configFiles[0]"
	for name, c := range map[string]struct {
		change                  func(*Source)
		reason, field, messages string
	}{
		"no ignition":             {func(s *Source) { s.Ignition = nil }, IgnitionInvalid, "HyperShift's ignition", "Ignition's parser"},
		"not JSON":                {ignition("{", "["), IgnitionInvalid, "HyperShift's ignition", "line 2"},
		"a version not ours":      {ignition(`"version": "3.2.0"`, `"version": "3.9.0"`), IgnitionInvalid, "HyperShift's ignition", "unsupported"},
		"a mode out of range":     {ignition(`"mode": 384`, `"mode": 99999`), IgnitionInvalid, "HyperShift's ignition", "illegal file mode"},
		"a unit of ours":          {ignition(`"name": "kubelet.service"`, `"name": "dpu-agent.service"`), IgnitionInvalid, "HyperShift's ignition", "together with what a DPU needs"},
		"a card without a system": {func(s *Source) { s.Flavor.Spec.DpuMode = "nic" }, FlavorRefused, "DPUFlavor spec.dpuMode", "another mode"},
		"no MachineConfig":        {ignition(machineConfigPath, "/etc/other.json"), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "no such file"},
		"no object":               {ignition("data:,%7B%22apiVersion", "data:,%5B%22apiVersion"), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "invalid character"},
		"no spec":                 {ignition("%22spec%22", "%22sp%22"), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "spec: "},
		"a spec that is null":     {machineConfig(`{"spec":null}`), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "its spec is null"},
		"no MachineConfig in it":  {machineConfig("null"), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "spec: "},
		"a large MachineConfig":   {machineConfig(strings.Repeat(" ", unpackedLimit) + "{}"), MachineConfigNotFound, "HyperShift's ignition, " + machineConfigPath, "more than 4 MiB"},
		"no image":                {func(s *Source) { s.MachineOS = "" }, MachineOSMissing, "DPUHCPBridge spec.machineOSImage", "set it"},
		"no registry":             {func(s *Source) { s.ZeroTrust = true }, RegistryInvalid, "DPFOperatorConfig spec.provisioningController.registry", `""`},
		"no URL":                  {func(s *Source) { s.ZeroTrust, s.Registry = true, "registry:80/a b" }, RegistryInvalid, "DPFOperatorConfig spec.provisioningController.registry", "https URL"},
		"no path":                 {files(dpf.ConfigFile{}), FlavorInvalid, first + ".path", `""`},
		"a relative path":         {files(dpf.ConfigFile{Path: "etc/motd"}), FlavorInvalid, first + ".path", `"etc/motd"`},
		"a winding path":          {files(dpf.ConfigFile{Path: "/etc/x/../hostname"}), FlavorInvalid, first + ".path", "without . and .."},
		"decimal permissions":     {files(dpf.ConfigFile{Path: "/etc/motd", Permissions: "0689"}), FlavorInvalid, first + ".permissions", `"0689"`},
		"too many permissions":    {files(dpf.ConfigFile{Path: "/etc/motd", Permissions: "10000"}), FlavorInvalid, first + ".permissions", "octal"},
		"an unknown operation":    {files(dpf.ConfigFile{Path: "/etc/motd", Operation: "prepend"}), FlavorInvalid, first + ".operation", `"prepend"`},
		"a file that is a unit":   {files(dpf.ConfigFile{Path: "/etc/systemd/system/crio.service.d/10-mco-default-env.conf"}), FlavorInvalid, first + ".path", "conflicts with systemd unit or dropin"},
		"more than DPF installs":  {func(s *Source) { s.Flavor.Annotations = nil; large(s, big[:100<<10]) }, TemplateTooLarge, "DPUFlavor metadata.annotations", dpf.AnnotationSkipSizeCheck},
		"more than a ConfigMap":   {func(s *Source) { large(s, big, big, big) }, TemplateTooLarge, "DPUFlavor spec.configFiles", "ConfigMap"},
		"the hostname":            {essential("/etc/hostname"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "/etc/hostname is needed"},
		"the way to the API":      {essential("/etc/NetworkManager/system-connections/br-comm-ch.nmconnection"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"the other way":           {essential("/etc/NetworkManager/system-connections/oob_net0.nmconnection"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"a link":                  {essential("/etc/systemd/network/10-tmfifo_net.link"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"the kubelet drop-in":     {essential("/etc/openshift/kubelet.conf.d/kubelet-dpf-override.conf"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"kubelet's configuration": {essential("/etc/kubernetes/kubelet.conf"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"kubelet's unit":          {essential("/etc/systemd/system/kubelet.service.d/x.conf"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"a unit":                  {essential("/etc/systemd/system/dpu-agent.service"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"a unit's drop-in":        {essential("/etc/systemd/system/tmfifo-agent-link.service.d/x.conf"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"a script":                {essential("/usr/local/bin/setup-vfs-devlink.sh"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"a script by its link":    {essential("/var/usrlocal/bin/setup-vfs-devlink.sh"), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
		"the image":               {essential(machineConfigPath), FlavorRefused, "DPUFlavor spec.configFiles[1].path", "take it out"},
	} {
		t.Run(name, func(t *testing.T) {
			from := source(t)
			c.change(&from)
			text, err := Template(from)
			var problem *Problem
			if !errors.As(err, &problem) || text != nil {
				t.Fatalf("%d bytes, error %v", len(text), err)
			}
			if problem.Reason != c.reason || problem.Field != c.field || !strings.Contains(problem.Message, c.messages) {
				t.Errorf("%s\n%s\n%s\nwant %s\n%s\n… %s", problem.Reason, problem.Field, problem.Message, c.reason, c.field, c.messages)
			}
		})
	}
}

// machineConfig replaces the MachineConfig, compressed as HyperShift does.
func machineConfig(text string) func(*Source) {
	return func(s *Source) {
		config, err := s.hypershift()
		if err != nil {
			panic(err)
		}
		config.Storage.Files[fileAt(&config, machineConfigPath)].Contents = packed([]byte(text))
		s.Ignition = marshalled(config)
	}
}

// large adds files that do not compress.
func large(s *Source, texts ...[]byte) {
	for i, text := range texts {
		s.Flavor.Spec.ConfigFiles = append(s.Flavor.Spec.ConfigFiles, dpf.ConfigFile{Path: fmt.Sprintf("/etc/large%d", i), Raw: string(text)})
	}
}

func TestAnnotatedFlavorsMayBeLarge(t *testing.T) {
	from := source(t)
	text := make([]byte, 100<<10)
	for i := range text {
		text[i] = byte(rand.IntN(256))
	}
	large(&from, text)
	made, err := Template(from)
	if err != nil || len(made) < dpf.MaxBFSize {
		t.Errorf("%d bytes, %v", len(made), err)
	}
}

// Neither can happen with what Template makes.
func TestWhatDPFCannotRenderIsNotATemplate(t *testing.T) {
	for text, want := range map[string]string{
		"{{": "unclosed action", "{{.DPUSerial}}": "can't evaluate field", `{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "etc"}]}}`: "path not absolute",
	} {
		if out, err := rendered([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s becomes %s, %v", text, out, err)
		}
	}
}
