// Package chart_test holds charts/oooi against config/, which it is made of, and against a real kube-apiserver.
package chart_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/cmd"
)

const (
	root   = "../.." // every program runs there, as the README says
	chart  = "charts/oooi"
	system = "oooi-system"
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// Each row is a set of values, and the same wish in kustomize. The chart leaves the namespace to Helm, and marks CRDs.
func TestTheChartIsWhatKustomizeBuilds(t *testing.T) {
	const whole = "resources: [CONFIG/default]\n"
	for name, c := range map[string]struct{ values, same, more string }{
		"as it is":                     {"", whole, ""},
		"one replica":                  {"replicas=1", whole + "replicas: [{name: oooi-controller-manager, count: 1}]\n", ""},
		"certificates by cert-manager": {"webhook.certManager=true", whole + "components: [CONFIG/components/cert-manager]\n", ""},
		"monitored":                    {"monitoring.enabled=true", whole + "components: [CONFIG/components/monitoring]\n", ""},
		"monitored, by cert-manager's certificate": {"monitoring.enabled=true,webhook.certManager=true", whole + "components: [CONFIG/components/monitoring, CONFIG/components/cert-manager]\n", ""},
		"monitored by OpenShift's platform": {"monitoring.enabled=true,monitoring.prometheus.namespace=openshift-monitoring,monitoring.prometheus.name=prometheus-k8s",
			whole + "components: [CONFIG/components/monitoring, CONFIG/components/prometheus]\n", ""},
		"with leave to read kubeconfigs": {"appsIngress.namespaces={clusters}", "resources: [CONFIG/default, more]\n", "namespace: clusters\ncomponents: [CONFIG/components/apps-ingress]\n"},
		"with leave to make bridges":     {"bridge.namespaces={dpf}", "resources: [CONFIG/default, more]\n", "namespace: dpf\ncomponents: [CONFIG/components/dpu-bridge]\n"},
		"with leave to copy images":      {"bridge.imageCacheNamespace=oooi-images", "resources: [CONFIG/default, more]\n", "namespace: oooi-images\ncomponents: [CONFIG/components/image-cache]\n"},
		"with leave to copy them elsewhere": {"bridge.imageCacheNamespace=images", "resources: [CONFIG/default, more]\n", "namespace: images\ncomponents: [CONFIG/components/image-cache]\n" + `patches:
- target: {kind: RoleBinding, name: oooi-image-cache-push}
  patch: |
    - {op: replace, path: /subjects/0/namespace, value: images}
`},
		"with addresses of MetalLB's for bridges": {"flags.bridge-virtual-ips={192.0.2.0/28},flags.metallb-namespace=lb", "resources: [CONFIG/default, more]\n" + `patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --bridge-virtual-ips=192.0.2.0/28}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --metallb-namespace=lb}
`, "namespace: lb\ncomponents: [CONFIG/components/metallb]\n"},
		"images of a registry that asks who it is": {"imagePullSecrets[0].name=mirror,imagePullSecrets[1].name=site", whole + `patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: mirror}, {name: site}]}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --image-pull-secrets=mirror}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --image-pull-secrets=site}
`, ""},
		"other images": {"image.repository=mirror.example.com:5000/oooi,envoyImage.repository=envoyproxy/envoy,envoyImage.digest=" + digest, whole + `images: [{name: oooi, newName: "mirror.example.com:5000/oooi"}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/template/spec/containers/0/env/0/value, value: "mirror.example.com:5000/oooi:v0.1.0"}
    - {op: replace, path: /spec/template/spec/containers/0/env/1/value, value: "envoyproxy/envoy@` + digest + `"}
`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := kustomized(t, c.same, c.more)
			delete(want, "v1 Namespace /"+system)
			for key, o := range want {
				if strings.Contains(key, " CustomResourceDefinition ") {
					o["metadata"].(map[string]any)["annotations"].(map[string]any)["helm.sh/resource-policy"] = "keep"
				}
			}
			if diff := cmp.Diff(want, objects(t, rendered(t, "--set", c.values))); diff != "" {
				t.Errorf("charts/oooi and config/ differ (-kustomize +helm):\n%s", diff)
			}
		})
	}
}

// What is switched off is granted nothing, asked about nothing, and not served.
func TestAGroupThatIsSwitchedOffIsNotThere(t *testing.T) {
	for off, c := range map[string]struct{ group, flag string }{
		"vlanServices": {`(- |group: )hostedcluster\.densityops\.com`, "- --vlan-services=false\n"},
		"bridge":       {`(- |group: )provisioning\.dpu\.hcp\.io`, "- --dpu-bridge=false\n"},
	} {
		t.Run(off, func(t *testing.T) {
			g := NewWithT(t)
			both := rendered(t, "--set", "monitoring.enabled=true,appsIngress.namespaces={a}")
			g.Expect(both).To(And(MatchRegexp(c.group), Not(ContainSubstring(c.flag))))
			one := rendered(t, "--set", "monitoring.enabled=true,appsIngress.namespaces={a},"+off+".enabled=false")
			g.Expect(one).To(And(Not(MatchRegexp(c.group)), ContainSubstring(c.flag)))
		})
	}
}

func TestWhatIsSwitchedOffTakesItsAlertsAndItsLeaveAlong(t *testing.T) {
	g, values := NewWithT(t), "monitoring.enabled=true,appsIngress.namespaces={a},bridge.namespaces={a},bridge.imageCacheNamespace=a,flags.bridge-virtual-ips={192.0.2.0/28}"
	for off, theirs := range map[string]string{"vlanServices": "oooi-daemons|oooi-apps-ingress|oooi_dhcp|oooi_proxy", "bridge": "oooi-dpu-bridge|oooi-image-cache|oooi-metallb"} {
		g.Expect(rendered(t, "--set", values)).To(MatchRegexp(theirs))
		g.Expect(rendered(t, "--set", values+","+off+".enabled=false")).NotTo(MatchRegexp(theirs))
	}
}

func TestAllIsInTheReleasesNamespace(t *testing.T) {
	g := NewWithT(t)
	for _, values := range []string{"monitoring.enabled=true,appsIngress.namespaces={a},bridge.namespaces={b}", "webhook.certManager=true"} {
		g.Expect(rendered(t, "--namespace", "elsewhere", "--set", values)).To(And(ContainSubstring("namespace: elsewhere"), Not(ContainSubstring(system))))
	}
}

func TestValuesReachThePod(t *testing.T) {
	g := NewWithT(t)
	text := rendered(t, "--set", "priorityClassName=system-cluster-critical,nodeSelector.zone=a,tolerations[0].operator=Exists,resources.limits.memory=1Gi,"+
		"flags.log-level=debug,flags.pod-cidrs={10.1.0.0/16,fd01::/48},flags.allow-image-override=true,"+
		"crds.keep=false,networkPolicy.enabled=false,podDisruptionBudget.enabled=false,global.registry=x")
	for _, there := range []string{
		"priorityClassName: system-cluster-critical\n", "nodeSelector:\n        zone: a\n", "tolerations:\n      - operator: Exists\n", "memory: 1Gi\n",
		"- --log-level=debug\n", "- --pod-cidrs=10.1.0.0/16,fd01::/48\n", "- --allow-image-override=true\n",
	} {
		g.Expect(text).To(ContainSubstring(there))
	}
	g.Expect(text).NotTo(MatchRegexp("helm.sh/resource-policy|kind: NetworkPolicy|kind: PodDisruptionBudget"))
}

func TestWrongValuesAreRefusedInASentence(t *testing.T) {
	for values, sentence := range map[string]string{
		"replicas=0":                                      "at '/replicas': minimum: got 0, want 1",
		"replicas=two":                                    "at '/replicas': got string, want integer",
		"replica=3":                                       "additional properties 'replica' not allowed",
		"image=oooi:v1":                                   "at '/image': got string, want object",
		"image.repository=":                               "at '/image/repository': minLength: got 0, want 1",
		"image.digest=sha256:abc":                         "at '/image/digest': 'sha256:abc' does not match pattern",
		"image.tag=":                                      "The image oooi has neither tag nor digest. Set one.",
		"flags.log-level=loud":                            "at '/flags/log-level': value must be one of 'debug', 'info', 'warn', 'error'",
		"flags.leader-elect=false":                        "at '/flags': additional properties 'leader-elect' not allowed",
		"flags.pod-cidrs={10.0.0.1}":                      "at '/flags/pod-cidrs/0': '10.0.0.1' does not match pattern",
		"appsIngress.namespaces={a,a}":                    "at '/appsIngress/namespaces': items at 0 and 1 are equal",
		"appsIngress.namespaces={A_b}":                    "at '/appsIngress/namespaces/0': 'A_b' does not match pattern",
		"bridge.imageCacheNamespace={a}":                  "at '/bridge/imageCacheNamespace': got array, want string",
		"bridge.namespaces=dpf":                           "at '/bridge/namespaces': got string, want array",
		"imagePullSecrets={mirror}":                       "at '/imagePullSecrets/0': got string, want object",
		"monitoring.prometheus.name=prometheus-k8s":       "at '/monitoring/prometheus': properties 'namespace' required, if 'name' exists",
		"crds.keep=perhaps":                               "at '/crds/keep': got string, want boolean",
		"vlanServices.enabled=false,bridge.enabled=false": "there would be nothing to do. Switch one on.",
		"image.repository=mirror.example.com/oooi":        "image.repository is mirror.example.com/oooi, but Envoy would still be the public docker.io/envoyproxy/envoy. Set envoyImage.repository: to your mirror of it, or to docker.io/envoyproxy/envoy if nodes may pull that.",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			_, err := run("helm", "template", "oooi", chart, "--set", values)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(sentence)))
		})
	}
}

// Flags that the schema names are the manager's; those of the manager's that it does not name, the templates set, or Helm users
// have no use for.
func TestFlagsAreTheManagers(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(root, chart, "values.schema.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var schema struct {
		Properties struct {
			Flags struct{ Properties map[string]any }
		}
	}
	g.Expect(yaml.Unmarshal(text, &schema)).To(Succeed())
	manager, _, err := cmd.Root().Find([]string{"manager"})
	g.Expect(err).NotTo(HaveOccurred())
	var left []string
	manager.Flags().VisitAll(func(f *pflag.Flag) {
		if _, named := schema.Properties.Flags.Properties[f.Name]; !named {
			left = append(left, f.Name)
		}
		delete(schema.Properties.Flags.Properties, f.Name)
	})
	g.Expect(schema.Properties.Flags.Properties).To(BeEmpty())
	g.Expect(left).To(ConsistOf("envoy-image", "health-probe-bind-address", "image", "image-pull-secrets", "leader-elect", "leader-election-namespace",
		"dpu-bridge", "metrics-bind-address", "metrics-secure", "vlan-services", "webhook-bind-address", "webhook-cert-dir"))
}

// A metric that an alert asks for, and a reason or a rule, is one that a source file of ours, or of controller-runtime, names.
func TestAlertsAreOfMetricsThatAreThere(t *testing.T) {
	g := NewWithT(t)
	alerts, err := os.ReadFile(root + "/config/components/monitoring/alerts.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	runtime, err := run("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime")
	g.Expect(err).NotTo(HaveOccurred())
	values := regexp.MustCompile(`(?:reason|rule)!?=?~"([A-Za-z|]+)"`).FindAllStringSubmatch(string(alerts), -1)
	g.Expect(len(values)).To(BeNumerically(">=", 4))
	names := regexp.MustCompile(`\b(oooi|controller_runtime|leader_election)_[a-z_]+`).FindAllString(string(alerts), -1)
	g.Expect(len(names)).To(BeNumerically(">=", 8))
	for _, alternatives := range values {
		names = append(names, strings.Split(alternatives[1], "|")...)
	}
	for _, name := range names {
		quoted := `"` + regexp.MustCompile("_(bucket|count)$").ReplaceAllString(name, "") + `"`
		_, err := run("grep", "-rqF", "--include=*.go", "--exclude=*_test.go", quoted, "internal", filepath.Join(strings.TrimSpace(runtime), "pkg"))
		g.Expect(err).NotTo(HaveOccurred(), name)
	}
}

// Of Secrets, the operator then has none, not even its own.
func TestWithCertManagerNoSecretIsTheOperators(t *testing.T) {
	g := NewWithT(t)
	const ours = "- secrets\n"
	g.Expect(strings.ReplaceAll(rendered(t), "[secrets]", ours)).To(ContainSubstring(ours))
	g.Expect(strings.ReplaceAll(rendered(t, "--set", "webhook.certManager=true"), "[secrets]", ours)).NotTo(ContainSubstring(ours))
}

func TestAPackedChartIsWhole(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	_, err := run("helm", "package", chart, "--destination", dir)
	g.Expect(err).NotTo(HaveOccurred())
	packed, err := filepath.Glob(dir + "/oooi-*.tgz")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(packed).To(HaveLen(1))
	text, err := run("helm", "template", "oooi", packed[0], "--namespace", system)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal(rendered(t)))
}

// Every image of what the page installs is at the mirror.
func TestThePageOnAirGapsInstallsFromTheMirror(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/AIRGAP.md"))
	g.Expect(err).NotTo(HaveOccurred())
	line := regexp.MustCompile(`(?m)^helm install oooi oooi-0.1.0.tgz (.*)$`).FindSubmatch(page)
	g.Expect(line).NotTo(BeNil())
	text, err := run("helm", append([]string{"template", "oooi", chart}, strings.Fields(string(line[1]))...)...)
	g.Expect(err).NotTo(HaveOccurred())
	images := regexp.MustCompile(`(?:image|value): "?(\S+:\S*v[0-9.]+)"?`).FindAllStringSubmatch(text, -1)
	g.Expect(images).To(HaveLen(3))
	for _, image := range images {
		g.Expect(image[1]).To(HavePrefix("registry.example.com/oooi/"))
	}
}

// The webhook's Service has the same labels: by its port only the one of metrics is scraped.
func TestOnlyTheServiceOfMetricsIsScraped(t *testing.T) {
	g := NewWithT(t)
	var scraped []string
	all := objects(t, rendered(t, "--set", "monitoring.enabled=true"))
	monitor := all["monitoring.coreos.com/v1 ServiceMonitor oooi-system/oooi-controller-manager"]["spec"].(map[string]any)
	port := monitor["endpoints"].([]any)[0].(map[string]any)["port"]
	for key, o := range all {
		if !strings.HasPrefix(key, "v1 Service ") {
			continue
		}
		g.Expect(o["metadata"].(map[string]any)["labels"]).To(Equal(monitor["selector"].(map[string]any)["matchLabels"]))
		for _, p := range o["spec"].(map[string]any)["ports"].([]any) {
			if p.(map[string]any)["name"] == port {
				scraped = append(scraped, key)
			}
		}
	}
	g.Expect(scraped).To(Equal([]string{"v1 Service oooi-system/oooi-controller-manager-metrics"}))
}

// rendered is what `helm template` prints.
func rendered(t *testing.T, args ...string) string {
	t.Helper()
	text, err := run("helm", append([]string{"template", "oooi", chart, "--namespace", system}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// kustomized is what `kubectl kustomize` builds of an overlay, and of another beside it.
func kustomized(t *testing.T, overlay, more string) map[string]map[string]any {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{dir: overlay, filepath.Join(dir, "more"): more} {
		if text == "" {
			continue
		}
		config, err := filepath.Abs(root + "/config")
		if err == nil {
			config, err = filepath.Rel(path, config)
		}
		if err == nil {
			err = os.MkdirAll(path, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(path, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "CONFIG", config)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := run("kubectl", "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, text)
}

// objects of a YAML text by what they are; no two may be the same.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if len(o) == 0 {
			continue
		}
		meta := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		key := o["apiVersion"].(string) + " " + o["kind"].(string) + " " + namespace + "/" + meta["name"].(string)
		if all[key] != nil {
			t.Fatalf("%s is there twice", key)
		}
		all[key] = o
	}
	return all
}

// run a program of the lab's.
func run(name string, args ...string) (string, error) {
	if name == "helm" || name == "kubectl" {
		name = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name)
	}
	var out, problem bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir = root
	c.Stdout, c.Stderr = &out, &problem
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problem.String())
	}
	return out.String(), nil
}
