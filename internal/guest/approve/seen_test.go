package approve

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/visits"
)

// connected is a client of a hosted API with a share of its own, to which nobody sends requests.
func connected(t *testing.T) *bounded.API {
	t.Helper()
	return connectedTo(t, "https://"+strings.ToLower(t.Name())+":6443", kubeconfig.Access{})
}

func connectedTo(t *testing.T, server string, access kubeconfig.Access) *bounded.API {
	t.Helper()
	a, err := bounded.Connect(server, access, new(net.Dialer).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// answers is a client of a hosted API that answers by path.
func answers(t *testing.T, byPath func(path string) string) *bounded.API {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, byPath(r.URL.Path)) }))
	t.Cleanup(server.Close)
	return connectedTo(t, server.URL, kubeconfig.Access{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})})
}

// says is a client of a hosted API that gives the same answer to everything.
func says(t *testing.T, text string) *bounded.API {
	t.Helper()
	return answers(t, func(string) string { return text })
}

// takenIn is an object of a hosted API as the client returns it.
func takenIn(t *testing.T, a *bounded.API) []byte {
	t.Helper()
	object, err := a.Do(t.Context(), bounded.Request{Verb: http.MethodGet, Path: "/object", Accept: bounded.AsJSON})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func listOf(objects ...string) string {
	return `{"metadata":{"resourceVersion":"1"},"items":[` + strings.Join(objects, ",") + `]}`
}

func TestOfAServiceWithTooManyPartsTheAddressesAreUnknown(t *testing.T) {
	g := NewWithT(t)
	service := func(ports int) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"},"spec":{"type":"ClusterIP","ports":[{}%s]}}`, strings.Repeat(",{}", ports))
	}
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: says(t, service(10)), queue: newQueue()}
	read, err := takenByServices.Of(takenIn(t, v.api))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Unknown).To(BeFalse())
	g.Expect(v.beyond()).To(BeEmpty())
	v.api = says(t, service(bounded.MostParts))
	read, err = takenByServices.Of(takenIn(t, v.api))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Unknown).To(BeTrue())
	g.Expect(v.beyond()).To(ConsistOf(HavePrefix("an object of the hosted cluster has more than 20000 parts")))
}

// What we keep of a large dual-stack cluster is within the limits.
func TestALargeClusterIsKept(t *testing.T) {
	g := NewWithT(t)
	var services, nodes []string
	for i := range bounded.MostObjects {
		services = append(services, fmt.Sprintf(`{"metadata":{"namespace":"openshift-some-namespace","name":"service-%d"},"spec":{"type":"ClusterIP","clusterIP":"172.31.%d.%d","clusterIPs":["172.31.%[2]d.%[3]d","fd02::%[1]x"]}}`, i, i/250, i%250))
		nodes = append(nodes, fmt.Sprintf(`{"metadata":{"name":"worker-%d.hosted.example.com"},"status":{"addresses":[{"type":"InternalIP","address":"10.1.%d.%d"},{"type":"InternalIP","address":"fd00::%[1]x"},{"type":"Hostname","address":"worker-%[1]d"}]}}`, i, i/250, i%250))
	}
	lists := map[string]string{takenByServices.Path: listOf(services...), hosts.Path: listOf(nodes...)}
	a := answers(t, func(path string) string { return lists[path] })
	var around surroundings
	var err error
	g.Expect(bounded.ListAll(t.Context(), a, takenByServices, func(all []taken) { // Services are kept while Nodes are read
		around.haveServices(all)
		err = bounded.ListAll(t.Context(), a, hosts, around.haveNodes)
	})).To(Succeed())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(around.unknown).To(BeFalse())
	g.Expect(around.services).To(HaveLen(2 * bounded.MostObjects))
	g.Expect(around.nodes).To(HaveLen(bounded.MostObjects))
}

// Nobody knows whether a Node with too many parts is Ready, so it counts as Ready.
func TestANodeOfWhichTheNameAloneIsKnownHasJoined(t *testing.T) {
	g := NewWithT(t)
	h, err := hosts.Of(takenIn(t, says(t, fmt.Sprintf(`{"metadata":{"name":"dpu-1","labels":{"a":""%s}},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, strings.Repeat(`,"b":""`, bounded.MostParts)))))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h).To(And(HaveField("Name", "dpu-1"), HaveField("Ready", true)))
	h, err = hosts.Of([]byte(`{"metadata":{"name":"dpu-1"},"status":{}}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.Ready).To(BeFalse())
}

// An address has a dozen octets as JSON, and takes ten times that in memory.
func TestAddressesAreCountedAsWhatTheyTake(t *testing.T) {
	g := NewWithT(t)
	service := func(n int) string {
		var ips []string
		for i := range 2000 {
			ips = append(ips, fmt.Sprintf("10.%d.%d.%d", n, i/250, i%250))
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": fmt.Sprint(n)}, "spec": map[string]any{"type": "ClusterIP", "externalIPs": append(ips, ips...)}})
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	kept := func(n int) (all []taken) {
		var services []string
		for i := range n {
			services = append(services, service(i))
		}
		g.Expect(bounded.ListAll(t.Context(), says(t, listOf(services...)), takenByServices, func(found []taken) { all = found })).To(Succeed())
		return all
	}
	most := bounded.MostBytes / 2 / (2000 * perAddress) // Services may have half
	fit := most * 9 / 10                                // their JSON is counted too
	all := kept(fit)
	g.Expect(all).To(HaveLen(fit))
	g.Expect(kept(most + 1)).To(ConsistOf(taken{Unknown: true}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var around surroundings
	around.haveServices(all)
	again := around
	again.haveServices(all)
	runtime.GC()
	runtime.ReadMemStats(&after)
	g.Expect(after.HeapAlloc).To(BeNumerically("<", before.HeapAlloc+bounded.MostBytes), "what finds them twice, as when they change")
	runtime.KeepAlive(around)
	runtime.KeepAlive(again)
	runtime.KeepAlive(all)
}

// Any user of a hosted cluster can create Services. If there are more than we keep, no address counts as free.
func TestMoreServicesThanAreKeptAreUnknown(t *testing.T) {
	for n, unknown := range map[int]bool{bounded.MostObjects + 1: true, 2: false} {
		g := NewWithT(t)
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"metadata":{"namespace":"a","name":"s%d","resourceVersion":"1"},"spec":{"type":"ClusterIP","clusterIP":"172.31.%d.%d"}}`, i, i/250, i%250))
		}
		var around surroundings
		g.Expect(bounded.ListAll(t.Context(), says(t, listOf(all...)), takenByServices, around.haveServices)).To(Succeed())
		g.Expect(around.unknown).To(Equal(unknown))
	}
}

func TestThatAHostedClusterIsSlowedIsSaid(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: says(t, listOf(slices.Repeat([]string{`{"metadata":{}}`}, 20000)...)), queue: newQueue()}
	g.Expect(v.beyond()).To(BeEmpty())
	pods := bounded.Collection[struct{}]{Path: "/api/v1/pods"}
	for range 10 {
		if v.api.IsSlowed() {
			break
		}
		slow, stop := context.WithTimeout(t.Context(), 2*time.Second)
		_, _ = pods.List(slow, v.api, func(watch.EventType, []byte) error { return nil })
		stop()
	}
	g.Expect(v.beyond()).To(ConsistOf(ContainSubstring("objects or 5000 HTTP/2 frames a second: it is read more slowly")))
}
