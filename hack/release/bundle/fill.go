package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// keys is where OLM mounts the webhook's certificate, which it makes (operator-lifecycle-manager, pkg/controller/install/webhook.go).
const keys = "/tmp/k8s-webhook-server/serving-certs"

// Dropped are the rendered objects that a bundle does not have, and why.
var Dropped = map[string]string{ //nolint:gosec // names of Secrets, which are none
	"Namespace/oooi-system":                  "whoever installs chooses it; it is suggested in the CSV",
	"ServiceAccount/oooi-controller-manager": "OLM makes it, because the CSV's permissions name it",
	"Service/oooi-webhook":                   "OLM makes one for the CSV's webhooks",
	"Secret/oooi-webhook-keys":               "OLM makes the webhook's certificate",
	"Role/oooi-webhook-keys":                 "likewise; and OLM would grant it, create secrets, in all namespaces (operatorgroup.go, ensureSingletonRBAC)",
	"RoleBinding/oooi-webhook-keys":          "likewise",
	"ClusterRole/oooi-webhook-trust":         "OLM writes the caBundle",
	"ClusterRoleBinding/oooi-webhook-trust":  "likewise",
	"Lease/oooi-manager":                     "OLM refuses the kind in a bundle; the leader makes it",
	"NetworkPolicy/oooi-controller-manager":  "OLM before OpenShift 4.20 refuses the kind in a bundle; the manager listens on the ports it allows and on no other",
}

// displayed are the CRDs' names for the console.
var displayed = map[string]string{
	"Infra": "Infra", "DPUHCPBridge": "DPU bridge", "DHCPServer": "DHCP server", "DNSServer": "DNS server", "ProxyServer": "Proxy server", "DHCPLease": "DHCP lease",
}

// filling is a CSV that is made of rendered objects.
type filling struct {
	csv             *v1alpha1.ClusterServiceVersion
	roles, bindings []*unstructured.Unstructured
	kept            []*unstructured.Unstructured
}

// fill puts each object where OLM wants it, and returns those that stand beside the CSV.
func fill(csv *v1alpha1.ClusterServiceVersion, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	csv.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	f := &filling{csv: csv}
	for _, o := range objects {
		if _, dropped := Dropped[id(o)]; dropped {
			continue
		}
		if err := f.take(o); err != nil {
			return nil, fmt.Errorf("%s: %w", id(o), err)
		}
	}
	if err := f.grants(); err != nil {
		return nil, err
	}
	slices.SortFunc(f.csv.Spec.RelatedImages, func(a, b v1alpha1.RelatedImage) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range f.kept {
		o.SetNamespace("") // OLM installs into the namespace of the Subscription
	}
	return f.kept, nil
}

func id(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

func (f *filling) take(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "Deployment":
		return f.deployment(o)
	case "ValidatingWebhookConfiguration":
		return f.webhooks(o)
	case "CustomResourceDefinition":
		f.kept = append(f.kept, o)
		return f.owns(o)
	case "ClusterRole", "Role":
		f.roles = append(f.roles, o)
	case "ClusterRoleBinding", "RoleBinding":
		f.bindings = append(f.bindings, o)
	case "Service", "PodDisruptionBudget":
		f.kept = append(f.kept, o)
	default:
		return fmt.Errorf("a bundle has no place for it: write one in take, or why there is none in Dropped")
	}
	return nil
}

func (f *filling) deployment(o *unstructured.Unstructured) error {
	deployment, err := as[appsv1.Deployment](o)
	if err != nil {
		return err
	}
	manager := &deployment.Spec.Template.Spec.Containers[0]
	manager.Args = append(manager.Args, "--webhook-cert-dir="+keys)
	f.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: o.GetName(), Label: o.GetLabels(), Spec: deployment.Spec}}
	f.csv.Annotations["containerImage"] = manager.Image
	for _, e := range manager.Env {
		if name, is := strings.CutPrefix(e.Name, "RELATED_IMAGE_"); is {
			if !byDigest.MatchString(e.Value) {
				return fmt.Errorf("the image %s has no digest: set IMG and ENVOY_IMG to HOST/NAME@sha256:DIGEST, because only such images are found at a mirror", e.Value)
			}
			f.csv.Spec.RelatedImages = append(f.csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: strings.ToLower(name), Image: e.Value})
		}
	}
	return nil
}

// webhooks have no matchConditions in a CSV: the operator itself leaves alone what these keep away (internal/webhook/review.go).
func (f *filling) webhooks(o *unstructured.Unstructured) error {
	configuration, err := as[admissionregistrationv1.ValidatingWebhookConfiguration](o)
	if err != nil {
		return err
	}
	target := intstr.FromString("webhook")
	for _, w := range configuration.Webhooks {
		path := "/validate"
		f.csv.Spec.WebhookDefinitions = append(f.csv.Spec.WebhookDefinitions, v1alpha1.WebhookDescription{
			GenerateName: w.Name, Type: v1alpha1.ValidatingAdmissionWebhook, DeploymentName: "oooi-controller-manager", ContainerPort: 443, TargetPort: &target,
			Rules: w.Rules, FailurePolicy: w.FailurePolicy, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
			AdmissionReviewVersions: w.AdmissionReviewVersions, WebhookPath: &path,
		})
	}
	return nil
}

func (f *filling) owns(o *unstructured.Unstructured) error {
	crd, err := as[apiextensionsv1.CustomResourceDefinition](o)
	if err != nil {
		return err
	}
	shown, known := displayed[crd.Spec.Names.Kind]
	if !known {
		return fmt.Errorf("no name for the console: write one in displayed")
	}
	for _, v := range crd.Spec.Versions {
		f.csv.Spec.CustomResourceDefinitions.Owned = append(f.csv.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{
			Name: crd.Name, Version: v.Name, Kind: crd.Spec.Names.Kind, DisplayName: shown, Description: strings.ReplaceAll(v.Schema.OpenAPIV3Schema.Description, "\n", " "),
		})
	}
	return nil
}

// grants puts the rules of bound roles into the CSV, each ServiceAccount's together, and keeps the roles that somebody else is to bind.
func (f *filling) grants() error {
	bound := map[string]bool{}
	install := &f.csv.Spec.InstallStrategy.StrategySpec
	for _, b := range f.bindings {
		binding, err := as[rbacv1.ClusterRoleBinding](b) // a RoleBinding has the same fields
		if err != nil {
			return err
		}
		role := slices.IndexFunc(f.roles, func(r *unstructured.Unstructured) bool {
			return r.GetKind() == binding.RoleRef.Kind && r.GetName() == binding.RoleRef.Name
		})
		if role < 0 || len(binding.Subjects) != 1 {
			return fmt.Errorf("%s: want a role that is rendered, and one subject", id(b))
		}
		rules, err := as[rbacv1.ClusterRole](f.roles[role])
		if err != nil {
			return err
		}
		into := &install.ClusterPermissions
		if b.GetKind() == "RoleBinding" {
			into = &install.Permissions
		}
		grant(into, binding.Subjects[0].Name, rules.Rules)
		bound[id(f.roles[role])] = true
	}
	for _, r := range f.roles {
		if !bound[id(r)] {
			f.kept = append(f.kept, r)
		}
	}
	slices.SortFunc(f.kept, func(a, b *unstructured.Unstructured) int { return cmp.Compare(id(a), id(b)) })
	return nil
}

func grant(into *[]v1alpha1.StrategyDeploymentPermissions, account string, rules []rbacv1.PolicyRule) {
	at := slices.IndexFunc(*into, func(p v1alpha1.StrategyDeploymentPermissions) bool { return p.ServiceAccountName == account })
	if at < 0 {
		at = len(*into)
		*into = append(*into, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account})
	}
	(*into)[at].Rules = append((*into)[at].Rules, rules...)
}

// as reads an object into its Go type.
func as[T any](o *unstructured.Unstructured) (into T, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &into)
	return into, err
}
