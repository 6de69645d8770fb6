package moving_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/moving"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func movesOf(t *testing.T, file string) []moving.Move {
	t.Helper()
	g := NewWithT(t)
	in, err := os.Open(file)
	g.Expect(err).NotTo(HaveOccurred())
	defer in.Close()
	objects, err := render.Read(in)
	g.Expect(err).NotTo(HaveOccurred())
	return moving.All(objects)
}

func TestAManifestBecomesABridge(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		g := NewWithT(t)
		var bridges, findings bytes.Buffer
		for _, m := range movesOf(t, filepath.Join(dir, "in.yaml")) {
			if m.Bridge != nil {
				g.Expect(render.YAML(&bridges, []runtime.ApplyConfiguration{m.Bridge})).To(Succeed())
			}
			for _, f := range m.Findings {
				fmt.Fprintf(&findings, "%s: %s %s: %s %s\n", f.Of, f.Severity, f.Reason, f.Field, f.Message)
			}
		}
		return map[string]string{"bridges.yaml": bridges.String(), "findings.txt": findings.String()}
	})
}

// An API server has the last word: it takes exactly the bridges of which nothing must be mended.
func TestAnAPIServerTakesTheBridges(t *testing.T) {
	g := NewWithT(t)
	cluster := envtest.For(t, false)
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(corev1.AddToScheme(scheme), dpuv1.AddToScheme(scheme))).To(Succeed())
	api, err := client.New(cluster.Admin, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob("testdata/*/in.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	taken := 0
	for _, file := range files {
		for _, m := range movesOf(t, file) {
			if m.Bridge == nil {
				continue
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: *m.Bridge.Namespace}}
			g.Expect(api.Create(t.Context(), namespace)).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
			err := api.Apply(t.Context(), m.Bridge, client.DryRunAll, client.FieldOwner("test"))
			if m.MustMend() {
				g.Expect(err).To(Satisfy(apierrors.IsInvalid), file)
				continue
			}
			g.Expect(err).NotTo(HaveOccurred(), file)
			taken++
		}
	}
	g.Expect(taken).To(Equal(4))
}
