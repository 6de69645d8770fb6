package apitest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

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
			g.Expect(row(t, "hostedcluster.densityops.com/v1alpha1", "infras")).To(HaveKeyWithValue("Cluster", c.cluster))
		})
	}
}

func TestABridgeIsListedWithWhatKeepsItsDPUsFromJoining(t *testing.T) {
	g := NewWithT(t)
	bridge := object(read[map[string]map[string]any](t, "testdata/base.yaml")["DPUHCPBridge"])
	g.Expect(api.Create(t.Context(), bridge)).To(Succeed())
	defer func() { g.Expect(api.Delete(t.Context(), bridge)).To(Succeed()) }()
	said := func(kind, status, reason string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	bridge.Object["status"] = map[string]any{"conditions": []any{said("HostedClusterAvailable", "True", "AsExpected"), said("Ready", "False", "WaitingForKubeconfig")}}
	g.Expect(api.Status().Update(t.Context(), bridge)).To(Succeed())
	cells := row(t, "provisioning.dpu.hcp.io/v1alpha1", "dpuhcpbridges")
	delete(cells, "Age")
	g.Expect(cells).To(Equal(map[string]any{
		"Name": "dpu1", "DPUCluster": "dpus", "Phase": "WaitingForKubeconfig", "Available": "True", "Ready": "False",
		"Release": "quay.io/openshift-release-dev/ocp-release:4.20.4-multi",
	}))
}

// row of the table that `kubectl -n default get -o wide` prints of the only object, by column.
func row(t *testing.T, version, resource string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	asAdmin, err := rest.HTTPClientFor(admin)
	g.Expect(err).NotTo(HaveOccurred())
	at, _, err := rest.DefaultServerUrlFor(admin)
	g.Expect(err).NotTo(HaveOccurred())
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.JoinPath("apis", version, "namespaces/default", resource).String(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	ask.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := asAdmin.Do(ask)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	table := metav1.Table{}
	g.Expect(json.NewDecoder(answer.Body).Decode(&table)).To(Succeed())
	g.Expect(table.Rows).To(HaveLen(1))
	cells := map[string]any{}
	for i, c := range table.ColumnDefinitions {
		cells[c.Name] = table.Rows[0].Cells[i]
	}
	return cells
}

func TestALeaseIsListedWithTheStagesOfItsWorker(t *testing.T) {
	g := NewWithT(t)
	lease := object(read[map[string]map[string]any](t, "testdata/base.yaml")["DHCPLease"])
	g.Expect(api.Create(t.Context(), lease)).To(Succeed())
	defer func() { g.Expect(api.Delete(t.Context(), lease)).To(Succeed()) }()
	generation := lease.GetGeneration()
	at := func(ago time.Duration) string { return time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro) }
	lease.Object["status"] = map[string]any{"client": "02:00:00:00:00:01", "stages": []any{
		map[string]any{"name": "NameAsked", "firstTime": at(10 * time.Minute), "serverName": "ignition.c1.example.com"},
		map[string]any{"name": "IgnitionHello", "firstTime": at(9 * time.Minute), "result": "Forwarded", "receivedBytes": int64(51200)},
		map[string]any{"name": "UnmatchedHello", "firstTime": at(8 * time.Minute), "serverName": "registry.example.com"},
	}}
	g.Expect(api.Status().Update(t.Context(), lease)).To(Succeed())
	g.Expect(lease.GetGeneration()).To(Equal(generation), "the spec is DHCP's alone")
	cells := row(t, "hostedcluster.densityops.com/v1alpha1", "dhcpleases")
	for _, other := range []string{"Name", "IP", "MAC", "Hostname", "VM", "State", "Expires"} {
		delete(cells, other)
	}
	g.Expect(cells).To(Equal(map[string]any{
		"Asked": "10m", "Ignition": "9m", "Ignition-Bytes": 51200.0, "API": nil, "Konnectivity": nil, "Node-Ready": nil, "Unmatched": "registry.example.com",
	}))
}
