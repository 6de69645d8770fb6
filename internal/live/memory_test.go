package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/live"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/procfs"
)

// optional rights, without one of which an Infra's page has less.
var optional = []string{"get dhcpservers", "get dnsservers", "get proxyservers", "get hostedclusters", "list nodepools", "list endpointslices", "list networkpolicies", "list events", "list network-attachment-definitions"}

// A step of one of 500 boots is seen by ten viewers of whom no two may read the same, and the process that serves them grows by 20 MiB at most.
// Each virtual machine is as large as KubeVirt writes them. How soon that is depends on what else runs here: test/lab/browser judges it.
func TestUnlikeViewersSeeAStepInLittleMemory(t *testing.T) {
	g := newGround(t, "crowd")
	g.machines("crowd", 500)
	p := g.process()
	c := &crowd{seen: map[int]bool{}}
	all := c.await("worker-crowd-77<")
	for i := range len(optional) + 1 {
		rights := slices.Concat([]string{"get infras", "list dhcpleases virtualmachines virtualmachineinstances"}, optional)
		token := g.user(fmt.Sprint("unlike-", i), "*", slices.Delete(rights, 2+i, min(3+i, len(rights)))...)
		c.size++
		go c.follow(t, i, p.url+"/infras/crowd/c1/events", token)
	}
	g.Eventually(all, 2*time.Minute).Should(BeClosed())

	grown, took := int64(0), []time.Duration(nil)
	for _, worker := range []int{77, 88, 99} {
		all := c.await(fmt.Sprintf(`worker-crowd-%d<.*<td></td><td></td><td class=\\"ok\\">ok</td><td></td></tr>`, worker))
		began := time.Now()
		g.dials("crowd", worker)
		g.Eventually(all, time.Minute).Should(BeClosed())
		took = append(took, time.Since(began))
		grown = max(grown, p.memory()-p.before)
	}
	t.Logf("%d viewers: %d KiB more; all saw a step after %s", c.size, grown>>10, took)
	g.Expect(grown).To(BeNumerically("<", 20<<20))
}

// machines with a lease each, of workers worker-NAMESPACE-NUMBER.
func (g ground) machines(namespace string, count int) {
	g.Helper()
	g.Expect(cluster.Install(kubevirt("VirtualMachine"), kubevirt("VirtualMachineInstance"))).To(Succeed())
	numbers := make(chan int, count)
	for i := range count - 1 {
		numbers <- i + 2
	}
	close(numbers)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range numbers {
				g.leases(namespace, i)
				g.create(machine("VirtualMachine", namespace, i), machine("VirtualMachineInstance", namespace, i))
			}
		})
	}
	group.Wait()
}

func machine(kind, namespace string, number int) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": namespace + "-c1", "name": fmt.Sprintf("worker-%s-%d", namespace, number), "labels": map[string]any{"hypershift.openshift.io/nodepool-name": "c1"},
			"annotations": map[string]any{"large": strings.Repeat("x", 9<<10)}},
		"spec": map[string]any{"networks": []any{map[string]any{"name": "vlan", "multus": map[string]any{"networkName": namespace + "/vlan100"}}},
			"domain": map[string]any{"devices": map[string]any{"interfaces": []any{map[string]any{"name": "vlan", "macAddress": macOf(number)}}}}},
		"status": map[string]any{"phase": "Running", "printableStatus": "Running"},
	}}
}

// kubevirt is a CRD of KubeVirt's, as far as it is read.
func kubevirt(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	c := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".kubevirt.io"}}
	c.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Group: "kubevirt.io", Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}}}
	return c
}

// dials is what the proxy notes of a worker.
func (g ground) dials(namespace string, worker int) {
	g.Helper()
	l := &v1alpha1.DHCPLease{}
	g.Expect(g.admin.Get(g.Context(), client.ObjectKey{Namespace: namespace, Name: "c1-dhcp-" + ipOf(worker)}, l)).To(Succeed())
	now := metav1.NowMicro()
	l.Status.Client, l.Status.Stages = string(l.Spec.MAC), []v1alpha1.Stage{{Name: v1alpha1.StageAPIHello, FirstTime: now, ServerName: "api.c1.example.com", Result: v1alpha1.StageForwarded}}
	g.Expect(g.admin.Status().Update(g.Context(), l)).To(Succeed())
}

// crowd are viewers who await a text.
type crowd struct {
	size int

	mu   sync.Mutex
	text *regexp.Regexp
	seen map[int]bool
	all  chan struct{}
}

// await a text that all viewers are sent from now on.
func (c *crowd) await(text string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text, c.seen, c.all = regexp.MustCompile(text), map[int]bool{}, make(chan struct{})
	return c.all
}

// follow a stream, and again when it ends.
func (c *crowd) follow(t *testing.T, viewer int, url, token string) {
	for t.Context().Err() == nil {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		if response.StatusCode != http.StatusOK {
			time.Sleep(500 * time.Millisecond) // new tokens are judged a few at a time
		}
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			c.hears(viewer, line)
		}
		_ = response.Body.Close()
	}
}

func (c *crowd) hears(viewer int, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[viewer] && c.text.MatchString(line) {
		if c.seen[viewer] = true; len(c.seen) == c.size {
			close(c.all)
		}
	}
}

// process serves the pages, and collects garbage as the manager does.
type process struct {
	Gomega
	url    string
	pid    int
	before int64
}

const serves = "OOOI_TEST_SERVES"

// process of its own for the pages; it has read the list of Infras before, as an operator has.
func (g ground) process() process {
	g.Helper()
	config, err := json.Marshal(access{cluster.Manager.Host, cluster.Manager.BearerToken, cluster.Manager.CAData})
	g.Expect(err).NotTo(HaveOccurred())
	c := exec.CommandContext(g.Context(), os.Args[0])
	c.Env, c.Stderr = append(envtest.Environ(), serves+"="+string(config)), g.Output()
	out, err := c.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Start()).To(Succeed())
	g.Cleanup(func() { _ = c.Wait() }) // its context has ended
	address, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.url = "http://" + strings.TrimSpace(address)
	token := g.user("first", "*", "list infras")
	g.Eventually(func() int { code, _ := g.sees("/", token); return code }, time.Minute).Should(Equal(http.StatusOK))
	p := process{g.Gomega, g.url, c.Process.Pid, 0}
	p.before = p.memory()
	return p
}

// memory that is its own, without what is mapped from files.
func (p process) memory() int64 {
	own, err := procfs.Memory(p.pid, procfs.Anonymous)
	p.Expect(err).NotTo(HaveOccurred())
	return own
}

// access to the API server.
type access struct {
	Host, Token string
	CA          []byte
}

func serve(text string) error {
	debug.SetGCPercent(20)
	var to access
	if err := json.Unmarshal([]byte(text), &to); err != nil {
		return err
	}
	config := &rest.Config{Host: to.Host, BearerToken: to.Token, TLSClientConfig: rest.TLSClientConfig{CAData: to.CA}, QPS: -1}
	api, err := client.New(config, client.Options{Scheme: controller.Scheme()})
	reviews, err2 := kubernetes.NewForConfig(config)
	listener, err3 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, live.New(context.Background(), live.NewReviews(api, reviews, time.Now).Who))
}
