package cmd

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// shell is what a reader of a page has: kubectl with a cluster, and oooi.
type shell struct {
	Gomega
	t   *testing.T
	dir string
	env []string
}

// newShell is in an empty directory with the repository's config, and reaches a cluster.
func newShell(t *testing.T) shell {
	t.Helper()
	s := inDirectory(t)
	s.reaches("x", envtest.For(t, false))
	return s
}

// inDirectory is a shell that reaches no cluster.
func inDirectory(t *testing.T) shell {
	t.Helper()
	s := shell{Gomega: NewWithT(t), t: t, dir: t.TempDir()}
	repository, err := filepath.Abs("..")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.Symlink(filepath.Join(repository, "config"), filepath.Join(s.dir, "config"))).To(Succeed())
	oooi := fmt.Sprintf("#!/bin/sh\nOOOI_TEST_ARGS=\"$(printf '%%s\\n' \"$@\")\" exec %s -test.run='^%s$'\n", os.Args[0], t.Name())
	for _, name := range []string{"oooi", asPlugin} {
		s.Expect(os.WriteFile(filepath.Join(s.dir, name), []byte(oooi), 0o700)).To(Succeed())
	}
	s.env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig(), "PATH="+s.dir+":"+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
	return s
}

func (s shell) kubeconfig() string { return filepath.Join(s.dir, "hosted.kubeconfig") }

// reaches adds a context to the kubeconfig. The first one is its current one.
func (s shell) reaches(context string, cluster *envtest.Cluster) {
	s.t.Helper()
	config := clientcmdapi.NewConfig()
	if before, err := clientcmd.LoadFromFile(s.kubeconfig()); err == nil {
		config = before
	}
	config.Clusters[context] = &clientcmdapi.Cluster{Server: cluster.Admin.Host, CertificateAuthorityData: cluster.Admin.CAData}
	config.AuthInfos[context] = &clientcmdapi.AuthInfo{ClientCertificateData: cluster.Admin.CertData, ClientKeyData: cluster.Admin.KeyData}
	config.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: context}
	config.CurrentContext = cmp.Or(config.CurrentContext, context)
	s.Expect(clientcmd.WriteToFile(*config, s.kubeconfig())).To(Succeed())
}

// writesExample writes a directory of manifests that preflight finds nothing in, a file for each object: the control plane's are in services.
func (s shell) writesExample() {
	s.t.Helper()
	example, err := os.ReadFile(preflightExamples + "good/control-plane-is-up.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.MkdirAll(filepath.Join(s.dir, "services"), 0o700)).To(Succeed())
	files := map[string]string{"Infra": "infra", "HostedCluster": "hostedcluster", "NodePool": "nodepool", "NetworkAttachmentDefinition": "nad"}
	for i, document := range strings.Split(string(example), "\n---\n") {
		_, kind, _ := strings.Cut(document, "kind: ")
		kind, _, _ = strings.Cut(kind, "\n")
		name, alone := files[kind]
		if !alone {
			name = fmt.Sprintf("services/%d", i)
		}
		s.Expect(os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(document), 0o600)).To(Succeed())
	}
}

// runs a script, every step of which must succeed, and returns its output.
func (s shell) runs(script string) string {
	s.t.Helper()
	c := exec.Command("bash", "-euo", "pipefail", "-c", script)
	c.Dir, c.Env = s.dir, s.env
	out, err := c.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
	return string(out)
}

const appsPage = `
kubectl create namespace clusters
kubectl create namespace metallb-system
kubectl apply -f - <<E
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: Infra, metadata: {namespace: clusters, name: c1}, spec: {hostedClusterRef: {name: c1}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: v}}}
---
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: DNSServer, metadata: {namespace: clusters, name: c1-dns}, spec: {hostedClusterDomain: c1.example.com, networkConfig: {serverIP: 192.168.100.3, secondaryNetworkCIDR: 192.168.100.0/24, networkAttachmentDefinition: v}}}
---
{apiVersion: operator.openshift.io/v1, kind: DNS, metadata: {name: default}, spec: {servers: [{name: corp, zones: [corp.example.com], forwardPlugin: {upstreams: [10.0.0.53]}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: metallb-system, name: controller}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: controller, image: m, args: [--port=7472, --log-level=info]}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: metallb-system, name: speaker}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: speaker, image: m, args: [--port=7472, --log-level=info]}]}}}}
E
kubectl patch dnsserver c1-dns -n clusters --subresource status --type merge -p '{"status":{"serviceClusterIP":"172.30.0.7"}}'
kubectl patch infra c1 -n clusters --subresource status --type merge --patch-file status.yaml
`

// Every command of docs/APPS_INGRESS.md does what the page says.
func TestThePageOnAppsIngress(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	golden, err := os.ReadFile("../internal/plan/testdata/apps/class-not-set/out.txt")
	s.Expect(err).NotTo(HaveOccurred())
	message, _, _ := strings.Cut(string(golden), "\n\n")
	status := fmt.Sprintf("status: {conditions: [{type: AppsIngressReady, status: 'False', reason: MetalLBClassNotSet, lastTransitionTime: '2026-11-21T09:00:00Z', message: %q}]}", message)
	s.Expect(os.WriteFile(filepath.Join(s.dir, "status.yaml"), []byte(status), 0o600)).To(Succeed())
	s.runs(appsPage)

	page, err := os.ReadFile("../docs/APPS_INGRESS.md")
	s.Expect(err).NotTo(HaveOccurred())
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	s.Expect(blocks).To(HaveLen(4))
	for _, block := range blocks {
		s.runs(block[1])
	}
	s.Expect(s.runs("kubectl auth can-i watch secrets -n clusters --as system:serviceaccount:oooi-system:oooi-controller-manager")).To(Equal("yes\n"))
	s.Expect(s.runs("kubectl get infra c1 -n clusters -o jsonpath='{.spec.appsIngress}'")).To(MatchJSON(`{"enabled": true, "mode": "NodePort"}`))
	for _, workload := range []string{"deployment controller", "daemonset speaker"} {
		s.Expect(s.runs("kubectl get -n metallb-system " + workload + " -o jsonpath='{.spec.template.spec.containers[0]}'")).
			To(And(ContainSubstring(`"args":["--port=7472","--log-level=info","--lb-class=metallb.io/metallb"]`), ContainSubstring(`"image":"m"`)))
	}
	s.Expect(s.runs("kubectl get dns.operator.openshift.io default -o jsonpath='{.spec.servers[*].zones[*]}'")).To(Equal("corp.example.com c1.example.com"))
}
