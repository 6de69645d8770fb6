package standin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// module is a published source tree that is read, never linked; sum pins its content.
type module struct{ path, version, sum string }

var (
	hypershiftAPI    = module{"github.com/openshift/hypershift/api", "v0.0.0-20251229083354-c1d28e31a05d", "h1:67qlySvqut2Tw1dyx1kccDC2vFWQzY+SB+GZzujLq68="} // as in go.mod
	hypershiftModule = module{"github.com/openshift/hypershift", "v0.1.60", "h1:x9xrDkBxTPOoLo3wamNKVtZ/ShNEvpYoTWZnLTQ00uk="}
	docaModule       = module{"github.com/nvidia/doca-platform", "v0.0.0-20251115082520-81369e955c6c", "h1:AA2VqLdE6rQ5mukC/xd6R5JoUhDAWaCOcd15e4esUWI="}
	openshiftModule  = module{"github.com/openshift/api", "v0.0.0-20260416105050-3c6b218b8a80", "h1:r0S/yoZAI0iWo1JvoIijaIgWGWf/izg4WiV7Wrtz16k="}
)

// dir downloads the module unless the cache has it, and returns its directory.
func (m module) dir(ctx context.Context) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version) //nolint:gosec // both are constants of this file
	download.Dir = os.TempDir()                                                                  // outside any module: our go.sum is neither consulted nor written
	out, err := download.Output()
	var got struct{ Dir, Sum, Error string }
	if decodeErr := json.Unmarshal(out, &got); decodeErr != nil || got.Error != "" {
		return "", fmt.Errorf("downloading the module %s@%s: %s %w", m.path, m.version, got.Error, err)
	}
	if got.Sum != m.sum {
		return "", fmt.Errorf("module %s@%s has the sum %s, want %s", m.path, m.version, got.Sum, m.sum)
	}
	return got.Dir, nil
}

// DPF is the directory of DPF's source tree, with its guides.
func DPF(ctx context.Context) (string, error) { return docaModule.dir(ctx) }

// crds are those of HyperShift, OpenShift, Cluster API and DPF, read from their modules, and two of KubeVirt. KubeVirt publishes no
// manifests with its API module, so of these only the names are real, and their schemas keep whatever is written.
func crds(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all := []*apiextensionsv1.CustomResourceDefinition{
		looseCRD("kubevirt.io", "v1", "VirtualMachine", "virtualmachines", "vm", "vms"),
		looseCRD("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances", "vmi", "vmis"),
	}
	for m, paths := range map[module][]string{
		hypershiftAPI: { // AAA_ungated.yaml has what no feature gate hides
			"hypershift/v1beta1/zz_generated.featuregated-crd-manifests/hostedclusters.hypershift.openshift.io/AAA_ungated.yaml",
			"hypershift/v1beta1/zz_generated.featuregated-crd-manifests/hostedcontrolplanes.hypershift.openshift.io/AAA_ungated.yaml",
			"hypershift/v1beta1/zz_generated.featuregated-crd-manifests/nodepools.hypershift.openshift.io/AAA_ungated.yaml",
		},
		hypershiftModule: {"cmd/install/assets/cluster-api/cluster.x-k8s.io_machines.yaml"},
		docaModule: {
			"config/operator-crds/operator.dpu.nvidia.com_dpfoperatorconfigs.yaml",
			"config/dpuservice/crd/bases/svc.dpu.nvidia.com_dpudeployments.yaml",
			"config/provisioning/crd/bases/provisioning.dpu.nvidia.com_bfbs.yaml",
			"config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpuclusters.yaml",
			"config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpuflavors.yaml",
			"config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpus.yaml",
		},
		openshiftModule: {"route/v1/zz_generated.crd-manifests/routes.crd.yaml"},
	} {
		dir, err := m.dir(ctx)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := readYAML(filepath.Join(dir, path), crd); err != nil {
				return nil, err
			}
			delete(crd.Annotations, "feature-gate.release.openshift.io/") // its build drops it: no API server takes an empty name
			if err := renew(crd); err != nil {
				return nil, err
			}
			all = append(all, crd)
		}
	}
	return all, nil
}

//go:embed dpf-26.4.yaml
var dpfPatches []byte

// renew makes a CRD of DPF's what it is in DPF 26.4.
func renew(crd *apiextensionsv1.CustomResourceDefinition) error {
	patches := map[string]json.RawMessage{}
	if err := yaml.Unmarshal(dpfPatches, &patches); err != nil {
		return err
	}
	patch, differs := patches[crd.Name]
	if !differs {
		return nil
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	old, err := json.Marshal(schema.Properties)
	if err != nil {
		return err
	}
	renewed, err := jsonpatch.MergePatch(old, patch)
	if err != nil {
		return fmt.Errorf("patching CRD %s: %w", crd.Name, err)
	}
	schema.Properties = nil
	return json.Unmarshal(renewed, &schema.Properties)
}

func readYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

func looseCRD(group, version, kind, plural string, short ...string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1], ShortNames: short},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
}
