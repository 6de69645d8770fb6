package dpf

import "k8s.io/apimachinery/pkg/types"

// A template is a ConfigMap in DPFOperatorConfig's namespace that DPF installs DPUs from. Its annotations have to equal what the DPU refers
// to, and only one ConfigMap's may (pkg/bfcfg/bfcfg.go).
const (
	// LabelTemplate is "true" on templates.
	LabelTemplate = "provisioning.dpu.nvidia.com/bfcfg-template"
	// TemplateKey has the text.
	TemplateKey = "BF_CFG_TEMPLATE"
)

// TemplateOf are the annotations of the template for the DPUs of a cluster, a BFB and a flavor.
func TemplateOf(cluster, bfb, flavor types.NamespacedName) map[string]string {
	all := map[string]string{}
	for kind, key := range map[string]types.NamespacedName{"cluster": cluster, "bfb": bfb, "dpuflavor": flavor} {
		all[LabelTemplate+"-"+kind+"-name"], all[LabelTemplate+"-"+kind+"-namespace"] = key.Name, key.Namespace
	}
	return all
}
