package standin

import (
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// The stand-in is only worth something if it matches HyperShift. These tests read HyperShift's own source tree, its manifests, its golden
// files and, where there is only code, the literals in it, and compare the stand-in with them.

const (
	hostedControlPlane = "control-plane-operator/controllers/hostedcontrolplane"
	assets             = hostedControlPlane + "/v2/assets"
	golden             = hostedControlPlane + "/testdata"
)

// tree is HyperShift's source.
type tree struct {
	t   *testing.T
	dir string
}

func hypershift(t *testing.T) tree {
	t.Helper()
	dir, err := hypershiftModule.dir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tree{t, dir}
}

func (h tree) text(path string) []byte {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, path))
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

func (h tree) read(path string, into any) {
	h.t.Helper()
	if err := yaml.Unmarshal(h.text(path), into); err != nil {
		h.t.Fatalf("reading %s: %v", path, err)
	}
}

func (h tree) parse(path string) *ast.File {
	h.t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, h.text(path), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return file
}

// constant is the value of a constant that is defined by a literal.
func (h tree) constant(path, name string) string {
	h.t.Helper()
	var found string
	ast.Inspect(h.parse(path), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == name && len(spec.Values) == 1 {
			found = byIP(spec.Values[0])[0]
		}
		return true
	})
	if found == "" {
		h.t.Fatalf("%s has no constant %s", path, name)
	}
	return found
}

// inFunction lists the literals of a function's body, in order.
func (h tree) inFunction(path, name string) []string {
	h.t.Helper()
	for _, d := range h.parse(path).Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return byIP(f.Body)
		}
	}
	h.t.Fatalf("%s has no function %s", path, name)
	return nil
}

func byIP(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(l.Value); err == nil {
				all = append(all, text)
			} else {
				all = append(all, l.Value)
			}
		}
		return true
	})
	return all
}

var testCluster = Cluster{Name: "c1", Strategy: LoadBalancer, BaseDomain: "hosted.example.com", IngressDomain: "apps.mgmt.example.com",
	LBAddress: "203.0.113.10", NodeAddress: "192.0.2.7", AttachedTo: "default/vlan100"}

func published(s Strategy) Cluster { c := testCluster; c.Strategy = s; return c }

func (c Cluster) serviceNamed(t *testing.T, name string) *corev1.Service {
	t.Helper()
	for _, s := range c.serviceObjects() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("the stand-in has no Service %s", name)
	return nil
}

func (c Cluster) podNamed(t *testing.T, name string) corev1.PodTemplateSpec {
	t.Helper()
	for _, p := range append(c.deployments(), c.etcd()) {
		if p.name == name {
			return p.template(c, "")
		}
	}
	t.Fatalf("the stand-in has no workload %s", name)
	return corev1.PodTemplateSpec{}
}

func TestServicesOfManifestsAreHyperShifts(t *testing.T) {
	h := hypershift(t)
	for _, path := range []string{
		"/ignition-server/service.yaml", "/ignition-server-proxy/service.yaml", "/kube-apiserver/konnectivity-server-service.yaml",
		"/etcd/service.yaml", "/etcd/discovery-service.yaml",
	} {
		want := corev1.Service{}
		h.read(assets+path, &want)
		got := testCluster.serviceNamed(t, want.Name)
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			t.Errorf("Service %s (-HyperShift +stand-in):\n%s", want.Name, diff)
		}
	}
}

// The other three Services are made in code, which names no ports.
func TestServicesOfCodeAreHyperShifts(t *testing.T) {
	h := hypershift(t)
	manifests := hostedControlPlane + "/manifests/infra.go"
	for _, want := range []struct{ nameConstant, portFile, portConstant, targetPort, app string }{
		{"KubeAPIServerServiceName", "support/config/constants.go", "KASSVCPort", "client", kubeAPIServer},
		{"oauthServiceName", hostedControlPlane + "/oauth/service.go", "OAuthServerPort", "", oauthServer},
		{"konnectivityServerServiceName", hostedControlPlane + "/kas/params.go", "KonnectivityServerPort", "", kubeAPIServer},
	} {
		name, port := h.constant(manifests, want.nameConstant), h.constant(want.portFile, want.portConstant)
		s := testCluster.serviceNamed(t, name)
		target := want.targetPort
		if target == "" {
			target = port
		}
		p := s.Spec.Ports[0]
		if len(s.Spec.Ports) != 1 || strconv.Itoa(int(p.Port)) != port || p.TargetPort.String() != target || p.Name != "" {
			t.Errorf("Service %s has the ports %v, HyperShift's is one without name, %s to %s", name, s.Spec.Ports, port, target)
		}
		if diff := cmp.Diff(map[string]string{"app": want.app, hyperv1.ControlPlaneComponentLabel: want.app}, s.Spec.Selector); diff != "" {
			t.Errorf("selector of Service %s (-HyperShift +stand-in):\n%s", name, diff)
		}
	}
	if target := h.inFunction(hostedControlPlane+"/kas/service.go", "ReconcileService"); !slices.Contains(target, "client") {
		t.Errorf("HyperShift's kube-apiserver Service no longer goes to the port named client: %q", target)
	}
}

func TestEverySelectorFindsItsPods(t *testing.T) {
	backends := map[string]string{
		kubeAPIServer: kubeAPIServer, konnectivityServer: kubeAPIServer, konnectivityLocal: kubeAPIServer,
		oauthServer: oauthServer, ignitionServer: ignitionServer, ignitionServerProxy: ignitionServerProxy,
		etcdClient: "etcd", etcdDiscovery: "etcd", router: router,
	}
	c := published(Route)
	for _, s := range c.serviceObjects() {
		labels := c.podNamed(t, backends[s.Name]).Labels
		for key, value := range s.Spec.Selector {
			if labels[key] != value {
				t.Errorf("Service %s selects %s=%s; the pods of %s have %q", s.Name, key, value, backends[s.Name], labels[key])
			}
		}
	}
}

func TestRoutesAreHyperShifts(t *testing.T) {
	h := hypershift(t)
	want := routev1.Route{}
	h.read(assets+"/ignition-server-proxy/route.yaml", &want)
	manifests := hostedControlPlane + "/manifests/infra.go"
	names := []string{
		want.Name, h.constant(manifests, "oauthExternalRoutePublicName"), h.constant(manifests, "konnectivityServerServiceName"),
		h.constant(manifests, "kubeAPIServerExternalPublicRouteName"),
	}
	var got []string
	for _, r := range published(Route).routes() {
		got = append(got, r.Name)
		if diff := cmp.Diff(want.Spec.TLS, r.Spec.TLS); diff != "" {
			t.Errorf("TLS of Route %s (-HyperShift +stand-in):\n%s", r.Name, diff)
		}
		if r.Name == want.Name && r.Spec.To.Name != want.Spec.To.Name {
			t.Errorf("Route %s leads to %s, HyperShift's to %s", r.Name, r.Spec.To.Name, want.Spec.To.Name)
		}
	}
	slices.Sort(got)
	slices.Sort(names)
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("Routes (-HyperShift +stand-in):\n%s", diff)
	}
}

func TestPodsCarryHyperShiftsLabels(t *testing.T) {
	h := hypershift(t)
	for name, path := range map[string]string{
		kubeAPIServer:       "/kube-apiserver/zz_fixture_TestControlPlaneComponents_kube_apiserver_deployment.yaml",
		ignitionServer:      "/ignition-server/zz_fixture_TestControlPlaneComponents_ignition_server_deployment.yaml",
		ignitionServerProxy: "/ignition-server-proxy/zz_fixture_TestControlPlaneComponents_ignition_server_proxy_deployment.yaml",
		oauthServer:         "/oauth-openshift/zz_fixture_TestControlPlaneComponents_oauth_openshift_deployment.yaml",
		router:              "/router/zz_fixture_TestControlPlaneComponents_router_deployment.yaml",
	} {
		want := appsv1.Deployment{}
		h.read(golden+path, &want)
		labels := map[string]string{}
		for key, value := range want.Spec.Template.Labels {
			labels[key] = strings.ReplaceAll(value, "hcp-namespace", testCluster.Namespace())
		}
		delete(labels, "hypershift.openshift.io/need-management-kas-access") // that of an egress policy, which the lab does not have
		if diff := cmp.Diff(labels, published(Route).podNamed(t, name).Labels); diff != "" {
			t.Errorf("labels of %s (-HyperShift +stand-in):\n%s", name, diff)
		}
	}
}

func TestContainerPortsAreHyperShifts(t *testing.T) {
	h := hypershift(t)
	for name, path := range map[string]string{
		kubeAPIServer: "/kube-apiserver/deployment.yaml", ignitionServerProxy: "/ignition-server-proxy/deployment.yaml",
		ignitionServer: "/ignition-server/deployment.yaml", router: "/router/deployment.yaml", "kube-controller-manager": "/kube-controller-manager/deployment.yaml",
	} {
		want := appsv1.Deployment{}
		h.read(assets+path, &want)
		ports := want.Spec.Template.Spec.Containers[0].Ports
		ports = slices.DeleteFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" }) // nothing scrapes them in the lab
		if diff := cmp.Diff(ports, published(Route).podNamed(t, name).Spec.Containers[0].Ports); diff != "" {
			t.Errorf("ports of %s (-HyperShift +stand-in):\n%s", name, diff)
		}
	}
	want := appsv1.Deployment{}
	h.read(assets+"/oauth-openshift/deployment.yaml", &want)
	listens := want.Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet.Port
	if got := testCluster.podNamed(t, oauthServer).Spec.Containers[0].ReadinessProbe.HTTPGet.Port; got != listens {
		t.Errorf("OAuth listens on %s, HyperShift's on %s", got.String(), listens.String())
	}
}

func TestKonnectivityServerRunsWithHyperShiftsFlags(t *testing.T) {
	want := appsv1.Deployment{}
	hypershift(t).read(assets+"/kube-apiserver/deployment.yaml", &want)
	for _, c := range want.Spec.Template.Spec.Containers {
		if c.Name != konnectivityServer {
			continue
		}
		if diff := cmp.Diff(append(c.Command, c.Args...), konnectivityServerCommand()); diff != "" {
			t.Errorf("konnectivity server (-HyperShift +stand-in):\n%s", diff)
		}
		return
	}
	t.Error("HyperShift's kube-apiserver pod has no konnectivity server")
}

// HyperShift makes its agent in code: all of its literals that are flags or their values have to be ours, in order.
func TestKonnectivityAgentRunsWithHyperShiftsFlags(t *testing.T) {
	all := hypershift(t).inFunction("control-plane-operator/hostedclusterconfigoperator/controllers/resources/konnectivity/reconcile.go", "buildKonnectivityWorkerAgentContainer")
	from, to := slices.Index(all, "--logtostderr=true"), slices.Index(all, "HTTP_PROXY")
	var want []string
	for _, text := range all[from:to] {
		if text != "ca.crt" { // a file's name in that code, a path in ours
			want = append(want, text)
		}
	}
	got := testCluster.konnectivityAgent(nil).Spec.Template.Spec.Containers[0].Args
	var known []string
	for _, arg := range got {
		if slices.Contains(want, arg) {
			known = append(known, arg)
		}
	}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("konnectivity agent (-HyperShift +stand-in):\n%s", diff)
	}
}

func TestEgressSelectorIsHyperShifts(t *testing.T) {
	configMap := corev1.ConfigMap{}
	hypershift(t).read(assets+"/kube-apiserver/egress-selector-config.yaml", &configMap)
	var want, got any
	for text, into := range map[string]*any{configMap.Data["config.yaml"]: &want, egressSelector: &got} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("egress selector (-HyperShift +stand-in):\n%s", diff)
	}
}

func TestNetworkPoliciesAreHyperShifts(t *testing.T) {
	h := hypershift(t)
	const code = "hypershift-operator/controllers/hostedcluster/network_policies.go"
	for name, function := range map[string]string{
		"openshift-ingress":         "reconcileOpenshiftIngressNetworkPolicy",
		"openshift-monitoring":      "reconcileOpenshiftMonitoringNetworkPolicy",
		"same-namespace":            "reconcileSameNamespaceNetworkPolicy",
		"nodeport-oauth":            "reconcileNodePortOauthNetworkPolicy",
		"nodeport-ignition":         "reconcileNodePortIgnitionNetworkPolicy",
		"nodeport-ignition-proxy":   "reconcileNodePortIgnitionProxyNetworkPolicy",
		"nodeport-konnectivity":     "reconcileNodePortKonnectivityNetworkPolicy",
		"nodeport-konnectivity-kas": "reconcileNodePortKonnectivityKASNetworkPolicy",
	} {
		want := slices.DeleteFunc(h.inFunction(code, function), func(text string) bool { return text == "app" })
		if diff := cmp.Diff(want, policyWords(t, name)); diff != "" {
			t.Errorf("NetworkPolicy %s (-HyperShift +stand-in):\n%s", name, diff)
		}
	}
	// That code has the API's port as a constant.
	if diff := cmp.Diff([]string{h.constant("support/config/constants.go", "KASSVCPort"), kubeAPIServer}, policyWords(t, "kas")); diff != "" {
		t.Errorf("NetworkPolicy kas (-HyperShift +stand-in):\n%s", diff)
	}
	declared := byIP(h.parse("hypershift-operator/controllers/manifests/networkpolicy/manifests.go"))
	for _, p := range published(NodePort).networkPolicies() {
		if !slices.Contains(declared, p.Name) {
			t.Errorf("HyperShift has no NetworkPolicy %s", p.Name)
		}
	}
}

// policyWords are the literals in HyperShift's code for a policy: the ports, then the labels.
func policyWords(t *testing.T, name string) (words []string) {
	t.Helper()
	all := published(NodePort).networkPolicies()
	at := slices.IndexFunc(all, func(p *networkingv1.NetworkPolicy) bool { return p.Name == name })
	if at < 0 {
		t.Fatalf("the stand-in has no NetworkPolicy %s", name)
	}
	for _, rule := range all[at].Spec.Ingress {
		for _, from := range rule.From {
			if from.NamespaceSelector != nil {
				for key, value := range from.NamespaceSelector.MatchLabels {
					words = append(words, key, value)
				}
			}
		}
		for _, port := range rule.Ports {
			words = append(words, port.Port.String())
		}
	}
	if app, ok := all[at].Spec.PodSelector.MatchLabels["app"]; ok {
		words = append(words, app)
	}
	return words
}

func TestDefaultIsWhatTheKubeVirtCommandLineWrites(t *testing.T) {
	text := hypershift(t).text("cmd/cluster/kubevirt/testdata/zz_fixture_TestCreateCluster_minimal_flags_necessary_to_render.yaml")
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		want := hyperv1.HostedCluster{}
		if err := yaml.Unmarshal([]byte(document), &want); err != nil || want.Kind != "HostedCluster" {
			continue
		}
		if diff := cmp.Diff(want.Spec.Services, testCluster.services()); diff != "" {
			t.Errorf("spec.services (-HyperShift's CLI +stand-in):\n%s", diff)
		}
		if diff := cmp.Diff(want.Spec.Networking.ServiceNetwork[0].CIDR.String(), serviceNetwork); diff != "" {
			t.Errorf("service network (-HyperShift's CLI +stand-in):\n%s", diff)
		}
		return
	}
	t.Error("HyperShift's golden file has no HostedCluster")
}

func TestAPIServerIsKnownByEveryNameOfHyperShifts(t *testing.T) {
	h := hypershift(t)
	want := h.inFunction("support/pki/kas.go", "GetKASServerCertificatesSANs")
	got := testCluster.apiServerNames()
	for _, name := range want {
		isName := strings.HasPrefix(name, "kubernetes") || strings.HasPrefix(name, "openshift") || name == "localhost" || name == "127.0.0.1"
		if isName && !slices.Contains(got, name) {
			t.Errorf("kube-apiserver's certificate lacks %s", name)
		}
	}
	if worker := h.constant("support/config/constants.go", "DefaultAdvertiseIPv4Address"); !slices.Contains(got, worker) {
		t.Errorf("kube-apiserver's certificate lacks %s, where workers' pods dial it", worker)
	}
}

func TestIgnitionSpeaksHyperShiftsWords(t *testing.T) {
	h := hypershift(t)
	const server, token = "ignition-server/cmd/start.go", "hypershift-operator/controllers/nodepool/token.go"
	if want := byIP(h.parse(server)); !slices.Contains(want, ignitionPath.String()) {
		t.Errorf("HyperShift's ignition server does not know the path %s", ignitionPath)
	}
	for constant, got := range map[string]string{"TokenSecretAnnotation": ignitionConfigAnno, "TokenSecretIgnitionReachedAnnotation": ignitionReachedAnno} {
		if want := h.constant(token, constant); got != want {
			t.Errorf("%s is %s, HyperShift's %s", constant, got, want)
		}
	}
	userData, err := testCluster.userData("example.com", []byte("token"), []byte("CA"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range h.inFunction(token, "ignConfig") {
		if constant, _, _ := strings.Cut(word, "%s"); constant != "" && constant != "," && !strings.Contains(string(userData), constant) {
			t.Errorf("user data lacks %q, which HyperShift's has: %s", word, userData)
		}
	}
}

func TestWorkersProxyIsWhereHyperShiftsIs(t *testing.T) {
	h := hypershift(t)
	const proxy = "hypershift-operator/controllers/nodepool/apiserver-haproxy/"
	files, err := testCluster.apiProxyFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	known := byIP(h.parse(proxy + "haproxy.go"))
	for _, f := range files {
		if !slices.Contains(known, f.Path) {
			t.Errorf("HyperShift writes no %s", f.Path)
		}
	}
	script := strings.ReplaceAll(string(h.text(proxy+"assets/setup-apiserver-ip.sh")), "{{ .InternalAPIAddress }}", workerAPIAddress)
	for command := range strings.Lines(script) {
		if strings.HasPrefix(command, "ip ") && !strings.Contains(decode(t, *files[0].Contents.Source), strings.TrimSpace(command)) {
			t.Errorf("the address is not set up by %q", command)
		}
	}
	pod := testCluster.apiProxy(nil)
	if !pod.Spec.HostNetwork || !slices.Contains(known, pod.Spec.Containers[0].Name) {
		t.Errorf("the proxy is not HyperShift's pod: %+v", pod.Spec)
	}
}

func decode(t *testing.T, source string) string {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(source, "data:text/plain;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
