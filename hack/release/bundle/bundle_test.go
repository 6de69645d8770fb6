package bundle_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/hack/release/bundle"
)

const (
	top    = "../../.."
	digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000001"
	oooi   = "registry.example.com/oooi/oooi" + digest
	envoy  = "registry.example.com/oooi/envoyproxy/envoy" + digest
)

// printed is what hack/manifests printed, by images.
var printed = map[string][]byte{}

// rendered is what hack/manifests prints, as `make deploy` applies it.
func rendered(t *testing.T, image, envoy string) []*unstructured.Unstructured {
	t.Helper()
	if text, done := printed[image+envoy]; done {
		return objects(t, text)
	}
	print := exec.Command(filepath.Join(top, "hack/manifests"), image, envoy)
	print.Env = append(os.Environ(), "KUBECTL="+filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"))
	out, err := print.Output()
	if err != nil {
		t.Fatal(err)
	}
	printed[image+envoy] = out
	return objects(t, out)
}

func objects(t *testing.T, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "" {
			all = append(all, o)
		}
	}
}

func examples(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, name := range []string{"infra.yaml", "dpuhcpbridge.yaml"} {
		text, err := os.ReadFile(filepath.Join(top, "config/samples", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects(t, text)...)
	}
	return all
}

// made is the bundle of config/, and its ClusterServiceVersion.
func made(t *testing.T) (bundle.Bundle, *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	b, err := bundle.Of("v0.1.0", rendered(t, oooi, envoy), examples(t))
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(b["manifests/oooi.clusterserviceversion.yaml"], csv); err != nil {
		t.Fatal(err)
	}
	return b, csv
}

func TestTheBundleIsValid(t *testing.T) {
	b, _ := made(t)
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Validate(dir); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "manifests/oooi.clusterserviceversion.yaml")
	text := bytes.ReplaceAll(b["manifests/oooi.clusterserviceversion.yaml"], []byte("minKubeVersion: 1.30.0"), []byte("minKubeVersion: new"))
	if err := os.WriteFile(csv, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Validate(dir); err == nil {
		t.Error("the validators find nothing in a bundle that is wrong")
	}
}

// Every object that config/ renders is in the bundle as it is, or its content is in the CSV, or it says why not.
func TestTheBundleHasWhatConfigRenders(t *testing.T) {
	b, csv := made(t)
	all, seen := rendered(t, oooi, envoy), map[string]bool{}
	for _, o := range all {
		id := o.GetKind() + "/" + o.GetName()
		_, dropped := bundle.Dropped[id]
		seen[id] = dropped
		if dropped {
			continue
		}
		switch o.GetKind() {
		case "Deployment":
			got := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
			manager := &got.Spec.Template.Spec.Containers[0]
			if last := manager.Args[len(manager.Args)-1]; !strings.HasPrefix(last, "--webhook-cert-dir=") {
				t.Errorf("the last argument is %s", last)
			}
			manager.Args = manager.Args[:len(manager.Args)-1]
			equal(t, id, fields(t, got.Spec), o.Object["spec"])
			equal(t, id+"'s labels", got.Label["app.kubernetes.io/name"], o.GetLabels()["app.kubernetes.io/name"])
		case "ValidatingWebhookConfiguration":
			sameWebhooks(t, o, csv)
		case "ClusterRoleBinding", "RoleBinding":
			sameRules(t, id, o, all, csv)
		case "ClusterRole", "Role":
			if _, kept := b[at(o)]; !kept && !isBound(o, all) {
				t.Errorf("%s is neither bound nor in the bundle", id)
			} else if kept {
				same(t, b, o)
			}
		default:
			same(t, b, o)
		}
	}
	for id := range bundle.Dropped {
		if !seen[id] {
			t.Errorf("config/ renders no %s: take it out of Dropped", id)
		}
	}
}

// same compares an object with its file in the bundle, which names no namespace.
func same(t *testing.T, b bundle.Bundle, o *unstructured.Unstructured) {
	t.Helper()
	var got map[string]any
	if err := yaml.Unmarshal(b[at(o)], &got); err != nil {
		t.Fatal(err)
	}
	want := o.DeepCopy()
	want.SetNamespace("")
	equal(t, at(o), got, fields(t, want))
}

func at(o *unstructured.Unstructured) string {
	return "manifests/" + strings.ToLower(o.GetKind()) + "_" + o.GetName() + ".yaml"
}

func sameWebhooks(t *testing.T, o *unstructured.Unstructured, csv *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	if len(webhooks) != len(csv.Spec.WebhookDefinitions) {
		t.Fatalf("%d webhooks, and %d in the CSV", len(webhooks), len(csv.Spec.WebhookDefinitions))
	}
	for i, w := range csv.Spec.WebhookDefinitions {
		want, got := webhooks[i].(map[string]any), fields(t, w).(map[string]any)
		equal(t, "name", got["generateName"], want["name"])
		for _, field := range []string{"rules", "failurePolicy", "sideEffects", "timeoutSeconds", "admissionReviewVersions"} {
			equal(t, w.GenerateName+" "+field, got[field], fields(t, want[field]))
		}
	}
}

// sameRules looks for each rule of a bound role in the CSV, once.
func sameRules(t *testing.T, id string, binding *unstructured.Unstructured, all []*unstructured.Unstructured, csv *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	granted := csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions
	if binding.GetKind() == "RoleBinding" {
		granted = csv.Spec.InstallStrategy.StrategySpec.Permissions
	}
	if len(granted) != 1 || granted[0].ServiceAccountName != "oooi-controller-manager" {
		t.Fatalf("%s: granted to %v", id, granted)
	}
	for _, o := range all {
		if !binds(binding, o) {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.ContainsFunc(granted[0].Rules, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) }) {
				t.Errorf("%s: the CSV lacks %v", id, rule)
			}
		}
	}
}

// The CSV grants no more than the Roles that are rendered.
func TestTheBundleGrantsNoMore(t *testing.T) {
	_, csv := made(t)
	all := rendered(t, oooi, envoy)
	for kind, granted := range map[string][]v1alpha1.StrategyDeploymentPermissions{"ClusterRole": csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions, "Role": csv.Spec.InstallStrategy.StrategySpec.Permissions} {
		var rules []rbacv1.PolicyRule
		for _, o := range all {
			var role rbacv1.ClusterRole
			if o.GetKind() == kind && isBound(o, all) {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
					t.Fatal(err)
				}
				rules = append(rules, role.Rules...)
			}
		}
		for _, rule := range granted[0].Rules {
			if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) }) {
				t.Errorf("no %s has %v", kind, rule)
			}
			if kind == "Role" && slices.Contains(rule.Resources, "secrets") {
				t.Errorf("OLM would grant %v in all namespaces", rule)
			}
		}
	}
}

func isBound(role *unstructured.Unstructured, all []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return binds(o, role) })
}

func binds(binding, role *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return kind == role.GetKind() && name == role.GetName()
}

// A mirror is asked for digests; nodes would pull an image by its tag from where it was.
func TestABundleHasImagesByDigest(t *testing.T) {
	_, csv := made(t)
	want := []v1alpha1.RelatedImage{{Name: "envoy", Image: envoy}, {Name: "oooi", Image: oooi}}
	if !reflect.DeepEqual(csv.Spec.RelatedImages, want) || csv.Annotations["containerImage"] != oooi {
		t.Errorf("relatedImages are %v", csv.Spec.RelatedImages)
	}
	for _, images := range [][2]string{{"registry.example.com/oooi:v0.1.0", envoy}, {oooi, "envoyproxy/envoy:v1"}} {
		if _, err := bundle.Of("v0.1.0", rendered(t, images[0], images[1]), nil); err == nil || !strings.Contains(err.Error(), "has no digest: set IMG and ENVOY_IMG") {
			t.Errorf("%v: %v", images, err)
		}
	}
}

func TestAReleaseHasANumber(t *testing.T) {
	for _, release := range []string{"", "latest", "v1"} {
		if _, err := bundle.Of(release, nil, nil); err == nil || !strings.Contains(err.Error(), "write one like v0.1.0") {
			t.Errorf("%q: %v", release, err)
		}
	}
}

// An object of a kind that nobody placed is not left out in silence.
func TestAnObjectWithoutAPlaceIsSaid(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	if _, err := bundle.Of("v0.1.0", []*unstructured.Unstructured{o}, nil); err == nil || !strings.Contains(err.Error(), "ConfigMap/a: a bundle has no place for it") {
		t.Error(err)
	}
}

// fields are an object's fields as YAML has them, without empty ones that Go's types write.
func fields(t *testing.T, object any) (all any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err == nil {
		err = yaml.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return without(all)
}

func without(value any) any {
	if m, is := value.(map[string]any); is {
		for key, v := range m {
			if v = without(v); v == nil || reflect.DeepEqual(v, map[string]any{}) {
				delete(m, key)
			}
		}
	}
	if l, is := value.([]any); is {
		for _, v := range l {
			without(v)
		}
	}
	return value
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if got, want := fields(t, got), fields(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// The page's command makes a valid bundle of the digests that a site has.
func TestThePageOnAirGapsMakesABundle(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs/AIRGAP.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^make bundle .*$`).FindString(string(page))
	dir, tree := t.TempDir(), absolute(t, top)
	_, only, _ := strings.Cut(digest, "@")
	if err := os.MkdirAll(filepath.Join(dir, "dist/release"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dist/release/oooi-v0.1.0.digest"), []byte(only+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash", "-euc", `make() { command make -s -C "$TREE" "$@"; }; `+line)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "TREE="+tree, "ENVOY_DIGEST="+only, "KUBECTL="+filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	csv, err := os.ReadFile(filepath.Join(tree, "dist/bundle/manifests/oooi.clusterserviceversion.yaml"))
	if err != nil || strings.Count(string(csv), "image: registry.example.com/oooi/") != 3 {
		t.Errorf("%v: %d images are at the mirror", err, strings.Count(string(csv), "image: registry.example.com/oooi/"))
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	all, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
