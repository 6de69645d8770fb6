package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	foreign "github.com/cldmnky/oooi/internal/testkit/envtest"
)

// cluster is a real kube-apiserver without nodes; the chart is installed there as users do it.
type cluster struct {
	*testing.T
	kubeconfig string
}

func started(t *testing.T) cluster {
	t.Helper()
	g := NewWithT(t)
	log.SetLogger(logr.Discard())
	others, err := foreign.Optional()
	g.Expect(err).NotTo(HaveOccurred())
	read, err := foreign.Foreign()
	g.Expect(err).NotTo(HaveOccurred())
	env := &envtest.Environment{BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"), ControlPlaneStartTimeout: foreign.Patience, ControlPlaneStopTimeout: foreign.Patience,
		CRDInstallOptions: envtest.CRDInstallOptions{CRDs: append(others, read...), MaxTime: foreign.Patience}}
	_, err = env.Start()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(env.Stop()).To(Succeed()) })
	c := cluster{t, filepath.Join(t.TempDir(), "kubeconfig")}
	g.Expect(os.WriteFile(c.kubeconfig, env.KubeConfig, 0o600)).To(Succeed())
	c.kubectl("create namespace clusters")
	return c
}

// kubectl runs a line of kubectl and returns what it prints.
func (c cluster) kubectl(line string) string { return c.does("kubectl " + line) }

// helm runs a line of helm.
func (c cluster) helm(line string) string { return c.does("helm " + line) }

func (c cluster) does(line string) string {
	c.Helper()
	out, err := c.tries(line)
	if err != nil {
		c.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (c cluster) tries(line string) (string, error) {
	words := strings.Fields(line)
	return run(words[0], append(words[1:], "--kubeconfig="+c.kubeconfig)...)
}

// pipes YAML into kubectl.
func (c cluster) pipes(yaml, line string) error {
	kubectl := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(strings.Fields(line), "--kubeconfig="+c.kubeconfig)...)
	kubectl.Stdin = strings.NewReader(yaml)
	if out, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", line, err, out)
	}
	return nil
}

// documented is the README's line that begins so, without its comment.
func documented(t *testing.T, begin string) string { return lineOf(t, "README.md", begin) }

func lineOf(t *testing.T, page, begin string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begin+" ") {
			line, _, _ = strings.Cut(line, "#")
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("%s has no line %s", page, begin)
	return ""
}

// may the operator's account do it?
func (c cluster) may(what string) bool { return c.mayAs(system+":oooi-controller-manager", what) }

func (c cluster) mayAs(account, what string) bool {
	out, err := c.tries("kubectl auth can-i " + what + " --as=system:serviceaccount:" + account)
	return err == nil && strings.TrimSpace(out) == "yes"
}

const infra = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100}
`

// A release's whole life; the API server is asked, not Helm.
func TestARelease(t *testing.T) {
	c, g := started(t), NewWithT(t)
	c.kubectl("create namespace oooi-system")
	c.kubectl("create namespace dpf")
	c.kubectl("create namespace metallb-system")
	t.Run("the API server takes all that can be rendered", c.takes)
	c.does(documented(t, "helm install") + " --set monitoring.enabled=true,appsIngress.namespaces={clusters},bridge.namespaces={dpf},flags.bridge-virtual-ips={192.0.2.0/28}")
	for _, there := range []string{"deployment/oooi-controller-manager", "poddisruptionbudget/oooi-controller-manager", "networkpolicy/oooi-controller-manager",
		"servicemonitor/oooi-controller-manager", "podmonitor/oooi-daemons", "prometheusrule/oooi", "service/oooi-webhook"} {
		c.kubectl("--namespace oooi-system get " + there)
	}
	g.Expect(c.pipes(infra, "apply -f -")).To(Succeed())
	c.kubectl("apply --filename config/samples/dpuhcpbridge.yaml")
	c.kubectl("--namespace clusters create secret generic dpu1-pull-secret --from-literal=of=theirs")

	t.Run("what the operator may do", c.permissions)
	t.Run("OpenShift's Prometheus finds what it scrapes", c.scraped)
	t.Run("an upgrade carries a new field, and keeps what the operator wrote", c.upgrade)
	t.Run("what is switched off loses its permissions, and nobody an object", c.switchOff)

	c.does(documented(t, "helm uninstall"))
	g.Expect(c.kubectl("get all,secret,lease,sa,pdb,networkpolicy,role,rolebinding,servicemonitor,podmonitor,prometheusrule -A -o name")).NotTo(ContainSubstring("oooi"))
	g.Expect(c.kubectl("get clusterrole,clusterrolebinding,validatingwebhookconfiguration -o name")).NotTo(ContainSubstring("oooi"))
	g.Expect(c.kubectl("--namespace clusters get infra,dpuhcpbridge,secret -o name")).To(And(ContainSubstring("/c1"), ContainSubstring("/dpu1\n"), ContainSubstring("/dpu1-pull-secret")))
	c.kubectl("get crd infras.hostedcluster.densityops.com dpuhcpbridges.provisioning.dpu.hcp.io")

	c.deploys(t) // over the CRDs that were kept
	c.helm("install oooi charts/oooi --namespace oooi-system --take-ownership")
	c.helm("upgrade oooi charts/oooi --namespace oooi-system --set crds.keep=false,replicas=3")
	c.kubectl("--namespace clusters delete infra/c1 dpuhcpbridge/dpu1")
	c.helm("uninstall oooi --namespace oooi-system --wait=legacy") // the watcher may miss what goes at once (helm/helm#31766)
	g.Expect(c.kubectl("get crd -o name")).NotTo(MatchRegexp("densityops|dpu.hcp.io"))
}

// deploys the operator as `make deploy` does, but for waiting for its pods, which nobody runs here.
func (c cluster) deploys(t *testing.T) {
	t.Helper()
	lines, err := run("make", "--no-print-directory", "--dry-run", "deploy", "KUBECTL=kubectl --kubeconfig="+c.kubeconfig)
	if err == nil {
		applies, _, _ := strings.Cut(lines, "\n")
		_, err = run("bash", "-c", applies)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func (c cluster) permissions(t *testing.T) {
	c.T = t
	g := NewWithT(t)
	g.Expect(c.may("list infras -A")).To(BeTrue())
	g.Expect(c.may("get secrets --namespace clusters")).To(BeTrue())
	g.Expect(c.may("create secrets --namespace dpf")).To(BeTrue())
	g.Expect(c.may("create secrets --namespace clusters")).To(BeFalse())
	for what, where := range map[string]string{"hostedclusters.hypershift.openshift.io": "dpf", "dpuclusters.provisioning.dpu.nvidia.com": "dpf", "ipaddresspools.metallb.io": "metallb-system"} {
		g.Expect(c.may("patch "+what+" --namespace "+where)).To(BeTrue(), what)
		g.Expect(c.may("patch "+what+" --namespace clusters")).To(BeFalse(), what)
		g.Expect(c.may("list "+what+" -A")).To(BeTrue(), what)
	}
	g.Expect(c.may("get secrets --namespace default")).To(BeFalse())
	g.Expect(c.may("list secrets --namespace clusters")).To(BeFalse())
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		g.Expect(c.may(verb+" secrets -A")).To(BeFalse(), verb)
		g.Expect(c.may(verb+" certificatesigningrequests")).To(BeFalse(), verb)
		g.Expect(c.may(verb+" dnses.operator.openshift.io")).To(BeFalse(), "the cluster's DNS is for its administrator to %s", verb)
	}
	g.Expect(c.may("update certificatesigningrequests --subresource=approval")).To(BeFalse())
	g.Expect(c.may("approve signers.certificates.k8s.io/kubernetes.io/kubelet-serving")).To(BeFalse())
}

func (c cluster) scraped(t *testing.T) {
	c.T = t
	const page, prometheus = "docs/reference/alerts.md", "openshift-monitoring:prometheus-k8s"
	for _, begin := range []string{"kubectl label", "helm upgrade"} {
		c.does(lineOf(t, page, begin))
	}
	g := NewWithT(t)
	for _, what := range []string{"list pods -A", "get /metrics", "list services --namespace oooi-system", "list endpoints --namespace oooi-system"} {
		g.Expect(c.mayAs(prometheus, what)).To(BeTrue(), what)
	}
	for _, what := range []string{"list services -A", "get secrets --namespace oooi-system", "create pods --namespace oooi-system"} {
		g.Expect(c.mayAs(prometheus, what)).To(BeFalse(), what)
	}
	g.Expect(c.kubectl("--namespace oooi-system get deployment oooi-controller-manager -o jsonpath={.spec.template.spec.containers[0].args}")).To(ContainSubstring("--metrics-namespaces=openshift-monitoring"))
}

func (c cluster) upgrade(t *testing.T) {
	c.T = t
	const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
	g := NewWithT(t)
	g.Expect(c.pipes(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: oooi-webhook}
webhooks: [{name: infras.hostedcluster.densityops.com, clientConfig: {caBundle: `+bundle+`}}]
`, "apply --server-side --field-manager=oooi-manager -f -")).To(Succeed())
	g.Expect(c.pipes(`apiVersion: v1
kind: Secret
metadata: {name: oooi-webhook-keys, namespace: oooi-system}
data: {tls.key: `+bundle+`}
`, "apply --server-side --field-manager=oooi-manager -f -")).To(Succeed())
	noted := infra + "  note: hello\n"
	g.Expect(c.pipes(noted, "apply -f -")).To(MatchError(ContainSubstring(`unknown field "spec.note"`)))

	next := filepath.Join(t.TempDir(), "oooi")
	g.Expect(exec.Command("cp", "-rL", filepath.Join(root, chart), next).Run()).To(Succeed())
	g.Expect(addsAField(filepath.Join(next, "config/crd/bases/hostedcluster.densityops.com_infras.yaml"))).To(Succeed())
	c.does(strings.Replace(documented(t, "helm upgrade"), chart, next, 1))

	g.Expect(c.pipes(noted, "apply -f -")).To(Succeed())
	g.Expect(c.kubectl("--namespace clusters get infra c1 -o jsonpath={.spec.note}")).To(Equal("hello"))
	g.Expect(c.kubectl("get validatingwebhookconfiguration oooi-webhook -o jsonpath={.webhooks[0].clientConfig.caBundle}")).To(Equal(bundle))
	g.Expect(c.kubectl(`--namespace oooi-system get secret oooi-webhook-keys -o jsonpath={.data.tls\.key}`)).To(Equal(bundle))
}

// addsAField to what an Infra's spec may have.
func addsAField(crd string) error {
	text, err := os.ReadFile(crd)
	if err != nil {
		return err
	}
	const spec = "            properties:\n              appsIngress:\n"
	if strings.Count(string(text), spec) != 1 {
		return fmt.Errorf("%s has not one place where the spec's fields begin:\n%s", crd, spec)
	}
	added := strings.Replace(string(text), spec, "            properties:\n              note:\n                type: string\n              appsIngress:\n", 1)
	return os.WriteFile(crd, []byte(added), 0o600)
}

func (c cluster) switchOff(t *testing.T) {
	c.T = t
	g := NewWithT(t)
	c.helm("upgrade oooi charts/oooi --namespace oooi-system --reuse-values --set vlanServices.enabled=false")
	g.Expect(c.may("list infras -A")).To(BeFalse())
	g.Expect(c.may("get secrets --namespace clusters")).To(BeFalse())
	g.Expect(c.may("list dpuhcpbridges -A")).To(BeTrue())
	g.Expect(c.kubectl("--namespace clusters get infra -o name")).To(ContainSubstring("/c1"))
	c.helm("upgrade oooi charts/oooi --namespace oooi-system --reuse-values --set vlanServices.enabled=true,bridge.enabled=false")
	g.Expect(c.may("list infras -A")).To(BeTrue())
	g.Expect(c.may("list dpuhcpbridges -A")).To(BeFalse())
}

// takes what is rendered, fields that it does not know included.
func (c cluster) takes(t *testing.T) {
	c.T = t
	for _, values := range []string{
		"monitoring.enabled=true,monitoring.labels.release=prometheus,webhook.certManager=true,crds.keep=false,image.digest=" + digest,
		"tolerations[0].operator=Exists,nodeSelector.zone=a,resources.limits.memory=1Gi,flags.log-level=debug,flags.pod-cidrs={10.1.0.0/16}",
		"monitoring.enabled=true,vlanServices.enabled=false", "monitoring.enabled=true,bridge.enabled=false",
	} {
		if err := c.pipes(rendered(t, "--set", values), "apply --server-side --dry-run=server --validate=strict -f -"); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}
