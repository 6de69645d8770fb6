package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/diffcli"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// before is what an Infra is changed from.
const before = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: NS}
spec:
  hostedClusterRef: {name: c1}
  networkConfig:
    cidr: 192.168.100.0/24
    networkAttachmentDefinition: c1-vlan
  infraComponents:
    dhcp: {rangeStart: 192.168.100.20, rangeEnd: 192.168.100.200, leaseTime: 1h}
`

const vlan = `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: c1-vlan, namespace: NS}
spec:
  config: '{"cniVersion":"0.3.1","name":"vlan","type":"bridge","bridge":"NS-c1","vlan":100}'
`

// edit replaces one text of the manifests by another.
type edit struct{ what, from, to string }

const dhcpLine = "    dhcp: {rangeStart: 192.168.100.20, rangeEnd: 192.168.100.200, leaseTime: 1h}\n"

// edits are made one after the other: each begins where the one before ends.
var edits = []edit{
	{"image of dns", dhcpLine, dhcpLine + "    dns: {image: example.com/oooi:2}\n"},
	{"image of dns back", "    dns: {image: example.com/oooi:2}\n", ""},
	{"lease time", "leaseTime: 1h}", "leaseTime: 2h}"},
	{"option", "leaseTime: 2h}", "leaseTime: 2h, options: [{code: 66, value: tftp.example.com, type: String}]}"},
	{"reservation for a machine that runs", "leaseTime: 2h,", `leaseTime: 2h, reservations: [{ip: 192.168.100.60, mac: "52:54:00:00:00:01"}],`},
	{"reservation of a leased address", `{ip: 192.168.100.60, mac: "52:54:00:00:00:01"}`, `{ip: 192.168.100.51, mac: "52:54:00:00:00:09", hostname: printer}`},
	{"host name of a reservation", "hostname: printer", "hostname: scanner"},
	{"reservation goes", ` reservations: [{ip: 192.168.100.51, mac: "52:54:00:00:00:09", hostname: scanner}],`, ""},
	{"pool shrinks under leases", "rangeEnd: 192.168.100.200", "rangeEnd: 192.168.100.50"},
	{"address of dhcp", "dhcp: {", "dhcp: {serverIP: 192.168.100.211, "},
	{"address of dns", "leaseTime: 2h, options: [{code: 66, value: tftp.example.com, type: String}]}\n", "leaseTime: 2h}\n    dns: {serverIP: 192.168.100.212}\n"},
	{"address of the proxy", "    dns: {serverIP: 192.168.100.212}\n", "    dns: {serverIP: 192.168.100.212}\n    proxy: {serverIP: 192.168.100.213}\n"},
	{"endpoint is added", "spec:\n  hosted", "spec:\n  extraEndpoints: [{name: registry, hostnames: [registry.example.com], port: 5000, protocol: TLS, target: {service: ignition-server-proxy, namespace: NS-c1, port: 443}}]\n  hosted"},
	{"endpoint leads elsewhere", "port: 443}}]", "port: 6443}}]"},
	{"endpoint goes", "  extraEndpoints: [{name: registry, hostnames: [registry.example.com], port: 5000, protocol: TLS, target: {service: ignition-server-proxy, namespace: NS-c1, port: 6443}}]\n", ""},
	{"resources of dhcp", "dhcp: {", "dhcp: {resources: {requests: {memory: 40Mi}}, "},
	{"node selector of the proxy", "proxy: {", "proxy: {nodeSelector: {rack: a}, "},
	{"one dns instance", "dns: {", "dns: {replicas: 1, "},
	{"image of the only dns instance", "dns: {replicas: 1, ", "dns: {replicas: 1, image: example.com/oooi:2, "},
	{"two dns instances", "dns: {replicas: 1, image: example.com/oooi:2, ", "dns: {image: example.com/oooi:2, "},
	{"apps", "spec:\n  hosted", "spec:\n  appsIngress: {enabled: true}\n  hosted"},
	{"mode of apps", "appsIngress: {enabled: true}", "appsIngress: {enabled: true, mode: HostNetwork}"},
	{"apps off", "  appsIngress: {enabled: true, mode: HostNetwork}\n", ""},
	{"upstream resolvers", "    networkAttachmentDefinition: c1-vlan\n", "    networkAttachmentDefinition: c1-vlan\n    dnsServers: [10.0.0.53]\n"},
	{"pause", "namespace: NS}\nspec:\n  hosted", "namespace: NS, annotations: {hostedcluster.densityops.com/paused: \"true\"}}\nspec:\n  hosted"},
	{"image while paused", "image: example.com/oooi:2, ", "image: example.com/oooi:3, "},
	{"pause ends", ", annotations: {hostedcluster.densityops.com/paused: \"true\"}", ""},
	{"spelling of the network", `"cniVersion":"0.3.1","name":"vlan"`, `"name":"vlan","cniVersion":"0.3.1"`},
	{"vlan of the network", `"vlan":100`, `"vlan":101`},
	{"proxy off", "proxy: {", "proxy: {enabled: false, "},
	{"proxy on", "proxy: {enabled: false, ", "proxy: {"},
}

// Each change is foretold, made with kubectl, and compared with what the operator then wrote: the objects, and the pod templates.
func TestWhatIsForetoldComesToPass(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	manifests := strings.ReplaceAll(before+"---\n"+vlan, "NS", w.ns)
	w.kubectl(manifests)
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), there)
	w.stop()
	w.settings.AllowImageOverride = true
	w.start()
	w.plays()
	w.settled("c1")
	for i, mac := range []string{"52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:03"} {
		w.creates(w.lease(fmt.Sprintf("192.168.100.%d", 50+i), mac))
	}
	w.silent()
	w.foretellsEach(manifests)
	w.foretellsAnotherOperator()
}

func (w *world) foretellsEach(manifests string) {
	w.t.Helper()
	for n, e := range edits {
		w.Expect(manifests).To(ContainSubstring(strings.ReplaceAll(e.from, "NS", w.ns)), e.what)
		manifests = strings.Replace(manifests, strings.ReplaceAll(e.from, "NS", w.ns), strings.ReplaceAll(e.to, "NS", w.ns), 1)
		foretold := w.foretells(manifests)
		was := w.everything()
		w.kubectl(manifests)
		w.silent()
		w.cameToPass(e.what, foretold, was, w.everything())
		golden.Compare(w.t, fmt.Sprintf("testdata/foretold/%02d-%s.txt", n+1, strings.ReplaceAll(e.what, " ", "-")), w.printed(foretold))
	}
}

// foretellsAnotherOperator says which pods stay when the operator's image changes, and which are replaced once their templates are updated.
func (w *world) foretellsAnotherOperator() {
	w.t.Helper()
	now, next := diffcli.Settings{Input: w.settings, Now: time.Now}, diffcli.Settings{Input: w.settings, Now: time.Now}
	next.Input.Image = "example.com/oooi:9"
	r, err := diffcli.OfManager(w.ctx, w.api, now, next)
	w.Expect(err).NotTo(HaveOccurred())
	golden.Compare(w.t, "testdata/foretold/another-operator.txt", w.printed(r))
	was := w.everything()
	w.stop()
	w.settings = next.Input
	w.start()
	w.silent()
	is := w.everything()
	w.Expect(replacedIn(was, is)).To(BeEmpty())
	w.updatesTemplates()
	w.Eventually(func() []string { return replacedIn(was, w.everything()) }).Should(ConsistOf(replacing(r.Infras[0].Updated.Pods)))
	w.silent()
	w.Expect(replacedIn(was, w.everything())).To(ConsistOf(replacing(r.Infras[0].Updated.Pods)))
}

// replacing are the workloads whose pods are replaced.
func replacing(pods []change.Pod) (all []string) {
	for _, p := range pods {
		if p.Verb == change.Replace {
			all = append(all, p.Workload)
		}
	}
	return all
}

// replacedIn are the workloads whose pod template changed.
func replacedIn(was, is map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if now, there := is[name]; there && now != was[name] && !strings.Contains(name, " ") {
			all = append(all, name)
		}
	}
	return all
}

// printed is a report for people, without what differs from run to run.
func (w *world) printed(r diffcli.Report) string {
	w.t.Helper()
	said := text(r)
	for _, changing := range [][2]string{{`\b` + w.ns + `\b`, "NS"}, {`\b02(:[0-9a-f]{2}){5}\b`, "MAC"}, {`\b[0-9a-f]{16}\b`, "DIGEST"}, {`\bbfcfg-b1-[0-9a-f]{10}\b`, "bfcfg-b1-DIGEST"}, {`\b10\.0(\.[0-9]+){2}\b`, "SERVICE"}} {
		said = regexp.MustCompile(changing[0]).ReplaceAllString(said, changing[1])
	}
	var same diffcli.Report
	w.Expect(json.Unmarshal([]byte(said), &same)).To(Succeed())
	var out bytes.Buffer
	w.Expect(diffcli.Table(&out, same)).To(Succeed())
	return out.String()
}

func (w *world) foretells(manifests string) diffcli.Report {
	w.t.Helper()
	objects, err := diffcli.Manifests(strings.NewReader(manifests), []string{"-"})
	w.Expect(err).NotTo(HaveOccurred())
	settings := diffcli.Settings{Input: w.settings, Bridges: w.groups.Bridges, Now: time.Now}
	r, err := diffcli.Of(w.ctx, w.api, settings, objects, w.ns)
	w.Expect(err).NotTo(HaveOccurred())
	return r
}

// Who may read and change one namespace only is told what he may not read, and the rest is judged.
func TestAMissingRightIsNamedAndTheRestIsForetold(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	manifests := strings.ReplaceAll(before, "NS", w.ns)
	w.kubectl(manifests)
	sees(w, named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), there)
	sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment"), there)
	anna := named(&rbacv1.Role{}, w.ns, "anna")
	anna.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{names.Group, "k8s.cni.cncf.io", "apps"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"hostedclusters"}, Verbs: []string{"get"}},
	}
	binding := named(&rbacv1.RoleBinding{}, w.ns, "anna")
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "anna"}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anna"}}
	w.creates(anna, binding)
	as := rest.CopyConfig(w.cluster.Admin)
	as.Impersonate.UserName = "anna"
	api := w.clientOf(as)
	objects, err := diffcli.Manifests(strings.NewReader(strings.Replace(manifests, "leaseTime: 1h", "leaseTime: 2h", 1)), []string{"-"})
	w.Expect(err).NotTo(HaveOccurred())
	r, err := diffcli.Of(w.ctx, api, diffcli.Settings{Input: w.settings, Now: time.Now}, objects, w.ns)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.NotJudged).To(ContainElements(
		"you may not patch infras.hostedcluster.densityops.com in namespace "+w.ns+": what depends on it counts as absent",
		"you may not list infras.hostedcluster.densityops.com in all namespaces: what depends on it counts as absent",
		"you may not list services in namespace "+w.controlPlane("c1")+": what depends on it counts as absent",
	))
	w.Expect(r.Infras).To(ContainElement(HaveField("Change.Objects", ContainElement(And(HaveField("Kind", "Infra"), HaveField("Fields", ContainElement(HaveField("Path", "spec.infraComponents.dhcp.leaseTime"))))))))
}

// kubectl applies manifests as users do.
func (w *world) kubectl(manifests string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	admin := w.cluster.Admin
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData, Token: admin.BearerToken}
	config.Contexts["x"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	w.Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	cmd := exec.CommandContext(w.ctx, "kubectl", "--kubeconfig", file, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	out, err := cmd.CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), string(out))
}

func (w *world) lease(ip, mac string) *v1alpha1.DHCPLease {
	return &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp-" + ip, Namespace: w.ns, Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: w.ns}},
		Spec: v1alpha1.DHCPLeaseSpec{
			IP: v1alpha1.IPv4Address(ip), MAC: v1alpha1.MACAddress(mac), ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound,
			DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour)),
		},
	}
}

// everything that an Infra has, or that users write, by kind and name; of workloads also the pod template, by their name alone.
func (w *world) everything() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.InfraList{}, &v1alpha1.DHCPServerList{}, &v1alpha1.DNSServerList{}, &v1alpha1.ProxyServerList{}, &nad.List{}, &networkingv1.NetworkPolicyList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		for _, namespace := range []string{w.ns, w.controlPlane("c1")} {
			w.Expect(w.api.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
			for _, o := range items(list) {
				kind, err := w.api.GroupVersionKindFor(o)
				w.Expect(err).NotTo(HaveOccurred())
				all[kind.Kind+" "+o.GetName()] = written(o)
				switch o := o.(type) {
				case *appsv1.StatefulSet:
					all[o.Name] = text(o.Spec.Template)
				case *appsv1.Deployment:
					all[o.Name] = text(o.Spec.Template)
				}
			}
		}
	}
	return all
}

// written is what was written of an object, without what tells when, and how often.
func written(o client.Object) string {
	var all map[string]any
	if err := json.Unmarshal([]byte(text(o)), &all); err != nil {
		panic(err) // it was encoded just now
	}
	annotations := maps.Clone(o.GetAnnotations())
	for _, unsaid := range []string{corev1.LastAppliedConfigAnnotation, names.AnnotationGiven, names.AnnotationApplied} {
		delete(annotations, unsaid)
	}
	delete(all, "status")
	all["metadata"] = map[string]any{"labels": o.GetLabels(), "annotations": annotations}
	return text(all)
}

func text(o any) string {
	said, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(said)
}

// cameToPass compares what was foretold with what was written.
func (w *world) cameToPass(what string, foretold diffcli.Report, was, is map[string]string) {
	w.t.Helper()
	var objects, replaced []string
	changes := foretold.Objects
	for _, i := range foretold.Infras {
		changes = append(changes, i.Objects...)
		replaced = append(replaced, replacing(i.Pods)...)
	}
	for _, b := range foretold.Bridges {
		changes = append(changes, b.Objects...)
	}
	for _, o := range changes {
		objects = append(objects, o.Verb+" "+o.Kind+" "+o.Name)
	}
	var did []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		isObject := strings.Contains(name, " ")
		now, there := is[name]
		switch {
		case !isObject:
		case !there:
			did = append(did, "delete "+name)
		case now != was[name]:
			did = append(did, "update "+name)
		}
	}
	for name := range is {
		if _, there := was[name]; !there && strings.Contains(name, " ") {
			did = append(did, "create "+name)
		}
	}
	slices.Sort(replaced)
	slices.Sort(objects)
	slices.Sort(did)
	if d := cmp.Diff(replacedIn(was, is), replaced, cmpopts.EquateEmpty()); d != "" {
		w.t.Errorf("%s: pod templates that changed (-), and that were foretold (+):\n%s", what, d)
	}
	if d := cmp.Diff(did, objects, cmpopts.EquateEmpty()); d != "" {
		w.t.Errorf("%s: objects that were written (-), and that were foretold (+):\n%s", what, d)
	}
}

// Of two new Infras on one VLAN, the second gets the addresses that the first leaves.
func TestTheSecondInfraOfTheFilesIsForetoldAfterTheFirst(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	first := strings.ReplaceAll(before, "NS", w.ns)
	second := strings.NewReplacer("metadata: {name: c1,", "metadata: {name: c2,", "hostedClusterRef: {name: c1}", "hostedClusterRef: {name: c2}", dhcpLine, "    dhcp: {enabled: false}\n").Replace(first)
	r := w.foretells(first + "---\n" + second)
	w.kubectl(first + "---\n" + second)
	w.Expect(r.Infras).To(HaveLen(2))
	for i, name := range []string{"c1", "c2"} {
		var foretold, are []string
		for _, p := range r.Infras[i].Pods {
			if p.Component != names.DHCP {
				foretold = append(foretold, p.IP)
			}
		}
		dns := sees(w, named(&v1alpha1.DNSServer{}, w.ns, names.DNSServer(name)), there)
		proxy := sees(w, named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer(name)), there)
		for _, ip := range slices.Concat(dns.Spec.NetworkConfig.ServerIPs(), proxy.Spec.NetworkConfig.ServerIPs()) {
			are = append(are, string(ip))
		}
		w.Expect(foretold).To(ConsistOf(are), "%s: %+v", name, r.Infras[i])
	}
}
