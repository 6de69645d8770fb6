// Package manyleases stands in for an API server that has the leases of a whole /16, which takes minutes to fill a real one with.
package manyleases

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	goruntime "runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// Count is the largest pool that is served.
	Count = 1 << 16
	// Namespace of the leases.
	Namespace = "clusters-c1"
	// Server is the DHCPServer that they are of.
	Server = "c1-dhcp"
	// Infra is the one that they are of.
	Infra = "c1"
	// Changed is the version in which a watch tells of the first lease.
	Changed = 100001
)

// mostOfPage is the largest page that is served.
const mostOfPage = 1000

// Client reads the leases over HTTP, in pages only. An API server takes no heed of a limit where any resourceVersion would do.
func Client(t *testing.T) client.WithWatch {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(api.Close)
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(v1alpha1.GroupVersion.WithKind("DHCPLease"), meta.RESTScopeNamespace)
	scheme := runtime.NewScheme()
	gomega.NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(gomega.Succeed())
	c, err := client.NewWithWatch(&rest.Config{Host: api.URL, QPS: -1}, client.Options{Scheme: scheme, Mapper: kinds})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return c
}

func serve(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	if asked.Get("watch") != "" {
		changed := Lease(0)
		changed.ResourceVersion = strconv.Itoa(Changed)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": changed})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	from, _ := strconv.Atoi(asked.Get("continue"))
	limit, _ := strconv.Atoi(asked.Get("limit"))
	if limit == 0 || limit > mostOfPage || asked.Get("resourceVersion") == "0" {
		http.Error(w, "an API server would send all leases at once", http.StatusBadRequest)
		return
	}
	page := v1alpha1.DHCPLeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "100000"}}
	for n := from; n < min(from+limit, Count); n++ {
		page.Items = append(page.Items, Lease(n))
	}
	if from+limit < Count {
		page.Continue = strconv.Itoa(from + limit)
	}
	_ = json.NewEncoder(w).Encode(page) // a client that goes away is no error
}

// Lease is the lease of a machine whose names are as long as HyperShift's.
func Lease(n int) v1alpha1.DHCPLease {
	ip := netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
	mac := fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16, n>>8&0xff, n&0xff)
	host := fmt.Sprintf("c1-workers-europe-%05d-x7k2p", n)
	fields := fmt.Sprintf(`{"f:metadata":{"f:labels":{".":{},"f:%s":{},"f:%s":{},"f:%s":{},"f:%s":{}}},"f:spec":{"f:clientID":{},"f:durableUntilTime":{},"f:expirationTime":{},`+
		`"f:hostname":{},"f:ip":{},"f:mac":{},"f:serverRef":{"f:name":{}},"f:state":{},"f:vmRef":{"f:name":{},"f:namespace":{},"f:uid":{}}}}`,
		names.LabelInfra, names.LabelInfraNamespace, names.LabelOwnerUID, names.LabelServer)
	until := time.Now().Add(24 * time.Hour)
	return v1alpha1.DHCPLease{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "DHCPLease"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: names.Lease(Server, ip), UID: "8f0cfa1a-6d5c-4b4a-9d1e-0123456789ab", ResourceVersion: strconv.Itoa(n + 1), Generation: 2,
			Labels: map[string]string{
				names.LabelInfra: Infra, names.LabelInfraNamespace: Namespace, names.LabelOwnerUID: "6a2f0f1a-6d5c-4b4a-9d1e-0123456789ab", names.LabelServer: Server,
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "oooi", Operation: "Update", APIVersion: v1alpha1.GroupVersion.String(), Time: new(metav1.Now()), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}},
		},
		Spec: v1alpha1.DHCPLeaseSpec{
			IP: v1alpha1.IPv4Address(ip.String()), MAC: v1alpha1.MACAddress(mac), ClientID: "01:" + mac, Hostname: host, State: v1alpha1.LeaseBound,
			ServerRef: v1alpha1.ServerReference{Name: Server}, DurableUntilTime: metav1.NewMicroTime(until), ExpirationTime: until.UTC().Format(time.RFC3339),
			VMRef: &v1alpha1.VMReference{Namespace: Namespace, Name: v1alpha1.ObjectName(host), UID: types.UID(fmt.Sprintf("8f0cfa1a-6d5c-4b4a-9d1e-%012x", n))},
		},
	}
}

// Most is what of this process's heap was live at most while work ran, in MiB, as collections found, of which there is one at each quarter more.
func Most(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	ended, most := make(chan struct{}), make(chan uint64)
	go func() {
		tick, live, highest := time.NewTicker(time.Millisecond), []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, uint64(0)
		defer tick.Stop()
		for {
			metrics.Read(live)
			highest = max(highest, live[0].Value.Uint64()>>20)
			select {
			case <-ended:
				most <- highest
				return
			case <-tick.C:
			}
		}
	}()
	work()
	close(ended)
	return <-most
}

// Memory is what this process has on its heap after a collection, in MiB.
func Memory() uint64 {
	var seen goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&seen)
	return seen.HeapAlloc >> 20
}
