package render_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

var planSettings = input.Settings{Image: "oooi:1", EnvoyImage: "envoy:1", ClusterDomain: "cluster.local"}

// TestAnAPIServerAcceptsAllThatIsPlanned applies every object of every golden case as a dry run: schemas, CEL rules and built-in validation
// have the last word.
func TestAnAPIServerAcceptsAllThatIsPlanned(t *testing.T) {
	cluster := envtest.For(t, false)
	api, err := client.New(cluster.Admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../plan/testdata/*/in.yaml", "../plan/testdata/provision/*/in.yaml"} {
		cases, err := filepath.Glob(pattern)
		if err != nil || len(cases) == 0 {
			t.Fatal("no cases", err)
		}
		for _, file := range cases {
			t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) { accepts(t, api, file) })
		}
	}
}

func accepts(t *testing.T, api client.Client, file string) {
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	objects, err := render.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, rendering := range objects.Render(planSettings) {
		for _, object := range rendering.Objects {
			o := live(t, object)
			ensureNamespace(t, api, o.GetNamespace())
			err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.FieldOwner(names.ManagerFieldOwner), client.ForceOwnership)
			if err != nil {
				t.Errorf("%s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
			}
		}
	}
}

// live gives owners a UID, which otherwise only a cluster does.
func live(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: fields}
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = "33333333-3333-3333-3333-333333333333"
	}
	o.SetOwnerReferences(owners)
	return o
}

func ensureNamespace(t *testing.T, api client.Client, name string) {
	t.Helper()
	err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
