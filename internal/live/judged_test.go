package live_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/live"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const canary = "canary-of-a-token"

var cluster *envtest.Cluster

func TestMain(m *testing.M) {
	if config := os.Getenv(serves); config != "" {
		fmt.Fprintln(os.Stderr, serve(config))
		os.Exit(1)
	}
	envtest.Main(m, false, func(c *envtest.Cluster) error {
		cluster = c
		return nil
	})
}

// ground is a management cluster with an Infra in each of some namespaces, and the pages as the manager serves them.
type ground struct {
	Gomega
	*testing.T
	admin client.Client
	url   string
}

func newGround(t *testing.T, namespaces ...string) ground {
	t.Helper()
	g := ground{Gomega: NewWithT(t), T: t}
	var err error
	g.admin, err = client.New(cluster.Admin, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	for _, namespace := range namespaces {
		g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-c1"}})
		infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c1"}}
		infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
		infra.Spec.NetworkConfig.CIDR, infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "192.168.100.0/24", "vlan100"
		g.create(infra, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace + "-c1", Name: "token-c1-91bf131f"}, Data: map[string][]byte{"token": []byte(canary)}})
		g.leases(namespace, 1)
	}
	config := rest.CopyConfig(cluster.Manager)
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	reviews, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(live.New(t.Context(), live.NewReviews(api, reviews, time.Now).Who))
	t.Cleanup(server.CloseClientConnections)
	g.url = server.URL
	return g
}

func (g ground) create(all ...client.Object) {
	g.Helper()
	for _, o := range all {
		g.Expect(g.admin.Create(g.Context(), o)).To(Succeed())
	}
}

// leases are of workers worker-NAMESPACE-NUMBER.
func (g ground) leases(namespace string, numbers ...int) {
	for _, i := range numbers {
		ip := ipOf(i)
		g.create(&v1alpha1.DHCPLease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c1-dhcp-" + ip, Labels: map[string]string{names.LabelInfra: "c1"}},
			Spec: v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip), MAC: v1alpha1.MACAddress(macOf(i)), Hostname: fmt.Sprintf("worker-%s-%d", namespace, i),
				ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))}})
	}
}

func ipOf(worker int) string { return fmt.Sprintf("192.168.%d.%d", 100+worker/200, worker%200+1) }

func macOf(worker int) string { return fmt.Sprintf("52:54:00:00:%02x:%02x", worker/256, worker%256) }

// user is a new one, with rights in one namespace, or in all ("*"); each is "verb resource…". It returns the user's token.
func (g ground) user(name, namespace string, rights ...string) string {
	g.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	g.create(account)
	request := &authenticationv1.TokenRequest{}
	g.Expect(g.admin.SubResource("token").Create(g.Context(), account, request)).To(Succeed())
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		words := strings.Fields(r)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"*"}, Verbs: words[:1], Resources: words[1:]})
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}}
	switch {
	case len(rules) == 0:
	case namespace == "*":
		g.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects})
	default:
		g.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects})
	}
	return request.Status.Token
}

func (g ground) ask(path, header, value string) *http.Response {
	g.Helper()
	request, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.url+path, nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set(header, value)
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (g ground) sees(path, token string) (code int, text string) {
	g.Helper()
	response := g.ask(path, "Authorization", "Bearer "+token)
	all, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(all)
}

// bridges makes a bridge with a certificate request that waits.
func (g ground) bridges(namespace string) {
	g.Helper()
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dpu1"}, Spec: dpuv1.DPUHCPBridgeSpec{
		DPUClusterRef: dpuv1.DPUClusterReference{Name: "d1"}, BaseDomain: "example.com", SSHKey: "ssh", PullSecret: "pull", OCPReleaseImage: "quay.io/openshift-release-dev/ocp-release:4.20.4-multi",
		ExposeThroughLoadBalancer: true, MetalLBVirtualIP: "192.0.2.10",
	}}
	g.create(b)
	b.Status.CertificateRequests = []dpuv1.CertificateRequest{{Name: "csr-of-" + namespace, Host: "dpu-1", Kind: dpuv1.BootstrapRequest, CreationTime: metav1.Now(), RefusedBy: "OSInstalled"}}
	g.Expect(g.admin.Status().Update(g.Context(), b)).To(Succeed())
}

// dpfOf is DPF's configuration, by which templates are looked for in its namespace.
func dpfOf(namespace string) client.Object {
	registry := map[string]any{"address": "http://192.0.2.1", "loadBalancerAddress": "https://192.0.2.2"}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"deploymentMode": dpf.ModeZeroTrust,
		"provisioningController": map[string]any{
			"enableDynamicBFCFGTemplates": true, "registry": registry, "installInterface": map[string]any{"installViaRedfish": map[string]any{"bfbRegistryAddress": "192.0.2.3:80"}},
		},
	}}}
	config.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.dpu.nvidia.com", Version: "v1alpha1", Kind: "DPFOperatorConfig"})
	config.SetNamespace(namespace)
	config.SetName("dpf")
	return config
}

func TestAViewerSeesWhatHeMayRead(t *testing.T) {
	g := newGround(t, "a", "b")
	g.bridges("a")
	g.bridges("b")
	g.create(dpfOf("a"))
	const infras, leases = "infras", "dhcpleases"
	all := g.user("all", "*", "get *", "list *")
	ofA := g.user("of-a", "a", "get "+infras, "list "+infras+" "+leases)
	bridgesOfA := g.user("bridges-of-a", "a", "list "+infras+" dpuhcpbridges")
	noLeases := g.user("no-leases", "a", "get "+infras, "list "+infras)
	leasesOnly := g.user("leases-only", "a", "list "+leases)
	nobody := g.user("nobody", "")
	g.Eventually(func() string { _, text := g.sees("/infras/a/c1", ofA); return text }, time.Minute).Should(ContainSubstring("worker-a-1")) // RBAC is cached, and so is what was judged by it

	for name, c := range map[string]struct {
		path, token string
		code        int
		has, hasNot string
	}{
		"everything":                          {"/", all, 200, "infras/b/c1", canary},
		"everything, another's Infra":         {"/infras/b/c1", all, 200, "worker-b-1", canary},
		"one namespace":                       {"/", ofA, 200, "infras/a/c1", "infras/b/c1"},
		"everything, requests":                {"/", all, 200, "<td>OSInstalled</td>", canary},
		"everything, another's requests":      {"/", all, 200, "csr-of-b", canary},
		"everything, templates":               {"/", all, 200, "csr-of-a", "bf.cfg templates: you may not"},
		"a bridge, its requests":              {"/", bridgesOfA, 200, "csr-of-a", "csr-of-b"},
		"Infras without bridges":              {"/", ofA, 200, "infras/a/c1", "csr-of-a"},
		"one namespace, its Infra":            {"/infras/a/c1", ofA, 200, "worker-a-1", "worker-b-1"},
		"one namespace, its worker":           {"/infras/a/c1/workers/worker-a-1", ofA, 200, "it has 192.168.100.2", canary},
		"one namespace, another's Infra":      {"/infras/b/c1", ofA, 403, "you may not get infras", "worker"},
		"one namespace, an Infra of nowhere":  {"/infras/b/none", ofA, 403, "you may not get infras", "found"},
		"one namespace, an Infra that is not": {"/infras/a/none", ofA, 404, "not found", "worker"},
		"one namespace, another's changes":    {"/infras/b/c1/events", ofA, 403, "you may not get infras", "worker"},
		"Infras without leases":               {"/infras/a/c1", noLeases, 200, "leases: you may not list dhcpleases", "worker-a-1"},
		"leases without Infras":               {"/infras/a/c1", leasesOnly, 403, "you may not get infras", "worker-a-1"},
		"leases without Infras, all":          {"/", leasesOnly, 403, "you may not list infras", "c1"},
		"nothing":                             {"/", nobody, 403, "you may not list infras", "c1"},
		"a token that nobody knows":           {"/", "made-up", 401, "the API server does not know this token", "c1"},
		"script":                              {"/live.js", "made-up", 200, "EventSource", "c1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := g.sees(c.path, c.token)
			NewWithT(t).Expect(text).To(And(ContainSubstring(c.has), Not(ContainSubstring(c.hasNot))))
			NewWithT(t).Expect(code).To(Equal(c.code))
		})
	}
	none := g.ask("/", "Accept", "text/html")
	g.Expect(none.StatusCode).To(Equal(http.StatusUnauthorized))
	g.Expect(none.Header.Get("WWW-Authenticate")).To(Equal("Bearer"))
	g.Expect(g.ask("/infras/a/c1", "X-Forwarded-Access-Token", ofA).StatusCode).To(Equal(http.StatusOK), "by a proxy that has signed him in")
	g.Expect(g.ask("/infras/a/c1", "X-Forwarded-User", "system:admin").StatusCode).To(Equal(http.StatusUnauthorized), "a name is no proof")
}

// next is the next event with a text; empty at the end of the stream.
func next(stream *bufio.Reader, text string) string {
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			return ""
		}
		if strings.HasPrefix(line, "data: ") && strings.Contains(line, text) {
			return line
		}
	}
}
