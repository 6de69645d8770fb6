package apitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

// previous are objects as commit f911f69 wrote them, before docs/reference/renamed.md: its planner, status package and lease store made
// these files. They are kept here until the test ends.
func previous(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	strict := client.WithFieldValidation(api, "Strict")
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "previous"}}}
	g.Expect(client.IgnoreAlreadyExists(api.Create(t.Context(), namespace))).To(Succeed())
	var all []*unstructured.Unstructured
	for _, file := range []string{"../plan/testdata/previous/objects.yaml", "testdata/previous.yaml"} {
		for _, written := range documents(t, file) {
			stored := written.DeepCopy()
			stored.SetNamespace("previous")
			stored.SetUID("")
			stored.SetResourceVersion("")
			stored.SetOwnerReferences(nil)
			g.Expect(strict.Create(t.Context(), stored)).To(Succeed())
			t.Cleanup(func() { NewWithT(t).Expect(api.Delete(context.Background(), stored)).To(Succeed()) })
			if status := written.Object["status"]; status != nil {
				stored.Object["status"] = runtime.DeepCopyJSONValue(status)
				g.Expect(strict.Status().Update(t.Context(), stored)).To(Succeed())
			}
			for _, part := range []string{"spec", "status"} {
				g.Expect(equality.Semantic.DeepDerivative(written.Object[part], stored.Object[part])).To(BeTrue(), "%s %s: %v is stored as %v",
					written.GetKind(), part, written.Object[part], stored.Object[part])
			}
			all = append(all, stored)
		}
	}
	return all
}

func documents(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

func TestObjectsOfThePreviousTreeAreStoredWholeAndMayChange(t *testing.T) {
	g, kinds := NewWithT(t), map[string]int{}
	for _, o := range previous(t) {
		kinds[o.GetKind()]++
		o.SetAnnotations(map[string]string{"example.com/changed": "yes"})
		g.Expect(api.Update(t.Context(), o)).To(Succeed(), o.GetKind())
		if o.Object["status"] != nil {
			g.Expect(api.Status().Update(t.Context(), o)).To(Succeed(), o.GetKind())
		}
	}
	g.Expect(kinds).To(Equal(map[string]int{"Infra": 1, "DHCPServer": 1, "DNSServer": 1, "ProxyServer": 1, "DHCPLease": 4, "DPUHCPBridge": 1}))
}

func TestLeasesOfThePreviousTreeAreRead(t *testing.T) {
	g := NewWithT(t)
	previous(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	ours, err := client.New(admin, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	var all []lease.Record
	_, err = (&leasekube.Store{Client: ours, Namespace: "previous", Server: "c1-dhcp"}).List(t.Context(), func(r lease.Record) { all = append(all, r) })
	g.Expect(err).NotTo(HaveOccurred())
	for i := range all {
		g.Expect(all[i].Version).NotTo(BeZero())
		all[i].Version = 0
	}
	g.Expect(all).To(ConsistOf(previousLeases()))
}

// previousLeases are what that tree was given to write.
func previousLeases() []lease.Record {
	at, ip := time.Date(2026, 11, 24, 11, 0, 0, 123456000, time.UTC), netip.MustParseAddr
	second := at.Truncate(time.Second)
	return []lease.Record{{
		IP: ip("192.168.100.43"), Client: lease.Client{MAC: "52:54:00:00:01:01"}, ClientID: "ff:00:00:01:01:00:01:00:01", Hostname: "worker-1",
		State: lease.Bound, Horizon: at.Add(24 * time.Hour), Expires: second.Add(24 * time.Hour),
		VM: lease.VM{Namespace: "clusters-c1", Name: "worker-1", UID: "vm-1"}, Dropped: []netip.Addr{ip("192.168.100.44")}, Owner: "i1",
	}, {
		IP: ip("192.168.100.45"), Client: lease.Client{ID: "ff:00:00:01:02"}, ClientID: "ff:00:00:01:02", State: lease.Bound,
		Horizon: at.Add(time.Hour), Expires: second.Add(time.Hour), Owner: "i1",
	}, {
		IP: ip("192.168.100.46"), State: lease.Declined, Horizon: at.Add(time.Hour), Expires: second.Add(time.Hour), Owner: "i1",
	}, {
		IP: ip("192.168.100.47"), Client: lease.Client{MAC: "52:54:00:00:01:02"}, State: lease.Released, Horizon: at, Owner: "i1",
	}}
}
