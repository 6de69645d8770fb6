package envtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/nad"
)

// module is a published source tree that we read and never link; its sum pins it.
type module struct{ path, version, sum string }

var (
	hypershift  = module{"github.com/openshift/hypershift/api", "v0.0.0-20251229083354-c1d28e31a05d", "h1:67qlySvqut2Tw1dyx1kccDC2vFWQzY+SB+GZzujLq68="} // as in go.mod
	installer   = module{"github.com/openshift/hypershift", "v0.1.60", "h1:x9xrDkBxTPOoLo3wamNKVtZ/ShNEvpYoTWZnLTQ00uk="}
	doca        = module{"github.com/nvidia/doca-platform", "v0.0.0-20251115082520-81369e955c6c", "h1:AA2VqLdE6rQ5mukC/xd6R5JoUhDAWaCOcd15e4esUWI="}
	metallb     = module{"go.universe.tf/metallb", "v0.15.3", "h1:jmTFharsaP9yBW0p/giOahfuVNTBIvwQqxx2eYxM6fc="}
	openshift   = module{"github.com/openshift/api", "v0.0.0-20260416105050-3c6b218b8a80", "h1:r0S/yoZAI0iWo1JvoIijaIgWGWf/izg4WiV7Wrtz16k="}
	certManager = module{"github.com/cert-manager/cert-manager", "v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="}
	prometheus  = module{"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="}
)

// dir downloads the module, unless it is in the cache, and returns its directory.
func (m module) dir() (string, error) {
	download := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version) //nolint:gosec // go.mod names them
	download.Dir = os.TempDir()                                                      // outside any module, so that no go.sum is read or written
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

// manifest is the path of a CRD's file in a module.
type manifest struct {
	module
	path string
}

// Foreign are the CRDs of the kinds that we read but do not define.
func Foreign() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	const hypershiftCRDs = "hypershift/v1beta1/zz_generated.featuregated-crd-manifests/" // AAA_ungated.yaml has what no feature gate hides
	all, err := read([]manifest{
		{hypershift, hypershiftCRDs + "hostedclusters.hypershift.openshift.io/AAA_ungated.yaml"},
		{hypershift, hypershiftCRDs + "hostedcontrolplanes.hypershift.openshift.io/AAA_ungated.yaml"},
		{hypershift, hypershiftCRDs + "nodepools.hypershift.openshift.io/AAA_ungated.yaml"},
		{installer, "cmd/install/assets/cluster-api/cluster.x-k8s.io_machines.yaml"},
		{openshift, "route/v1/zz_generated.crd-manifests/routes.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_networks.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagetagmirrorsets.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_images.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_03_config-operator_01_proxies.crd.yaml"},
		{openshift, "operator/v1/zz_generated.crd-manifests/0000_70_dns_00_dnses.crd.yaml"},
		{openshift, "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml"},
		{doca, "config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpuclusters.yaml"},
		{doca, "config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpus.yaml"},
		{doca, "config/provisioning/crd/bases/provisioning.dpu.nvidia.com_bfbs.yaml"},
		{doca, "config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpuflavors.yaml"},
		{doca, "config/provisioning/crd/bases/provisioning.dpu.nvidia.com_dpunodes.yaml"},
		{doca, "config/dpuservice/crd/bases/svc.dpu.nvidia.com_dpudeployments.yaml"},
		{doca, "config/dpuservice/crd/bases/svc.dpu.nvidia.com_dpuservicetemplates.yaml"},
		{doca, "config/dpuservice/crd/bases/svc.dpu.nvidia.com_dpuserviceconfigurations.yaml"},
		{doca, "config/operator-crds/operator.dpu.nvidia.com_dpfoperatorconfigs.yaml"},
		{metallb, "config/crd/bases/metallb.io_ipaddresspools.yaml"},
		{metallb, "config/crd/bases/metallb.io_l2advertisements.yaml"},
	})
	if err != nil {
		return nil, err
	}
	return append(all, attachments()), renew(all)
}

// renew makes those of DPF's CRDs what they are in DPF 26.4 that differ.
func renew(crds []*apiextensionsv1.CustomResourceDefinition) error {
	patches := map[string]json.RawMessage{}
	if err := readYAML(filepath.Join(root(), "test/lab/standin/dpf-26.4.yaml"), &patches); err != nil {
		return err
	}
	for _, crd := range crds {
		patch, differs := patches[crd.Name]
		if !differs {
			continue
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
		if err := json.Unmarshal(renewed, &schema.Properties); err != nil {
			return err
		}
	}
	return nil
}

// Optional are the CRDs of cert-manager and the Prometheus operator, for which the operator's own manifests have objects.
func Optional() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read([]manifest{
		{certManager, "deploy/crds/cert-manager.io_certificates.yaml"},
		{certManager, "deploy/crds/cert-manager.io_issuers.yaml"},
		{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"},
		{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"},
		{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"},
	})
}

func read(manifests []manifest) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, of := range manifests {
		dir, err := of.dir()
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := readYAML(filepath.Join(dir, of.path), crd); err != nil {
			return nil, err
		}
		delete(crd.Annotations, "feature-gate.release.openshift.io/") // its build drops it: no API server takes an empty name
		all = append(all, crd)
	}
	return all, nil
}

// attachments is the CRD of Multus' kind, whose own says as little.
func attachments() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{"spec": object(map[string]apiextensionsv1.JSONSchemaProps{"config": text})})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "network-attachment-definitions." + nad.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: nad.GroupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "NetworkAttachmentDefinition", ListKind: "NetworkAttachmentDefinitionList",
				Plural: "network-attachment-definitions", Singular: "network-attachment-definition",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: nad.GroupVersion.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
			}},
		},
	}
}
