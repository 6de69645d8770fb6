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
	spec := map[string]any{"hostname": "worker-1", "expirationTime": "2030-01-01T00:00:00Z", "vmRef": map[string]any{"namespace": "vms", "name": "w1", "uid": "1"}}
	lease := object(merged(read[map[string]map[string]any](t, "testdata/base.yaml")["DHCPLease"], map[string]any{"spec": spec}))
	g.Expect(api.Create(t.Context(), lease)).To(Succeed())
	defer func() { g.Expect(api.Delete(t.Context(), lease)).To(Succeed()) }()
	generation := lease.GetGeneration()
	// From ten minutes on an age is told without seconds.
	at := func(ago time.Duration) string { return time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro) }
	lease.Object["status"] = map[string]any{"client": "02:00:00:00:00:01", "stages": []any{
		map[string]any{"name": "NameAsked", "firstTime": at(15 * time.Minute), "serverName": "ignition.c1.example.com"},
		map[string]any{"name": "IgnitionHello", "firstTime": at(14 * time.Minute), "result": "Forwarded", "receivedBytes": int64(51200)},
		map[string]any{"name": "APIHello", "firstTime": at(13 * time.Minute), "result": "Forwarded", "receivedBytes": int64(1)},
		map[string]any{"name": "KonnectivityHello", "firstTime": at(12 * time.Minute), "result": "Forwarded", "receivedBytes": int64(2)},
		map[string]any{"name": "NodeReady", "firstTime": at(11 * time.Minute)},
		map[string]any{"name": "UnmatchedHello", "firstTime": at(10 * time.Minute), "serverName": "registry.example.com"},
	}}
	g.Expect(api.Status().Update(t.Context(), lease)).To(Succeed())
	g.Expect(lease.GetGeneration()).To(Equal(generation), "the spec is DHCP's alone")
	cells := row(t, "hostedcluster.densityops.com/v1alpha1", "dhcpleases")
	g.Expect(cells).To(Equal(map[string]any{
		"Name": lease.GetName(), "IP": "192.168.100.50", "MAC": "52:54:00:00:00:01", "Hostname": "worker-1", "VM": "w1", "State": "Bound", "Expires": "2030-01-01T00:00:00Z",
		"Asked": "15m", "Ignition": "14m", "Ignition-Bytes": 51200.0, "API": "13m", "Konnectivity": "12m", "Node-Ready": "11m", "Unmatched": "registry.example.com",
	}))
}
