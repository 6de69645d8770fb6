package apitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const seedsForm = "{hostedClusterRef: null, infraComponents: {dns: {baseDomain: example.com, clusterName: c2}, proxy: {controlPlaneNamespace: clusters-c2}}}"

func TestAnInfraIsListedWithItsCluster(t *testing.T) {
	base := read[map[string]map[string]any](t, "testdata/base.yaml")["Infra"]
	for form, c := range map[string]struct{ spec, cluster string }{
		"by hostedClusterRef":                            {"{hostedClusterRef: {name: c1, namespace: clusters}}", "c1"},
		"by hostedClusterRef, under another name in DNS": {"{infraComponents: {dns: {clusterName: other}}}", "c1"},
		"in the seeds' form":                             {seedsForm, "c2"},
	} {
		t.Run(form, func(t *testing.T) {
			g := NewWithT(t)
			spec := map[string]any{}
			g.Expect(yaml.Unmarshal([]byte(c.spec), &spec)).To(Succeed())
			infra := object(merged(base, map[string]any{"spec": spec}))
			g.Expect(api.Create(t.Context(), infra)).To(Succeed())
			defer func() { g.Expect(api.Delete(t.Context(), infra)).To(Succeed()) }()
			g.Expect(column(t, "Cluster")).To(Equal([]any{c.cluster}))
		})
	}
}

// column of the table that `kubectl -n default get infra` prints.
func column(t *testing.T, name string) (cells []any) {
	t.Helper()
	g := NewWithT(t)
	asAdmin, err := rest.HTTPClientFor(admin)
	g.Expect(err).NotTo(HaveOccurred())
	at, _, err := rest.DefaultServerUrlFor(admin)
	g.Expect(err).NotTo(HaveOccurred())
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.JoinPath("apis/hostedcluster.densityops.com/v1alpha1/namespaces/default/infras").String(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	ask.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := asAdmin.Do(ask)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	table := metav1.Table{}
	g.Expect(json.NewDecoder(answer.Body).Decode(&table)).To(Succeed())
	i := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
	g.Expect(i).To(BeNumerically(">=", 0), "no column %s", name)
	for _, row := range table.Rows {
		cells = append(cells, row.Cells[i])
	}
	return cells
}
