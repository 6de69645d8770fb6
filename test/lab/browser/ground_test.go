//go:build browser

// Package browser looks at the pages of `oooi ui` as Chromium shows them. `make browser` runs it.
package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const repository, canary = "../../..", "canary-of-a-secret"

// ground is a management cluster, and `oooi ui` of its admin at url.
type ground struct {
	*testing.T
	api client.Client
	url string
}

var (
	env    *envtest.Environment
	config *rest.Config
)

const patience = 3 * time.Minute

// TestMain starts the control plane. envtest expects its default namespace within 5 s; one that is busy has it later.
func TestMain(m *testing.M) {
	env = &envtest.Environment{
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience, CRDDirectoryPaths: []string{filepath.Join(repository, "config/crd/bases")},
		CRDs: []*apiextensionsv1.CustomResourceDefinition{kubevirt("VirtualMachine"), kubevirt("VirtualMachineInstance")},
	}
	var err error
	config, err = env.Start()
	for end := time.Now().Add(patience); wait.Interrupted(err) && env.Config != nil && time.Now().Before(end); {
		env.UseExistingCluster = ptr.To(true)
		config, err = env.Start()
	}
	env.UseExistingCluster = nil
	code := 1
	if err == nil {
		config.QPS = -1
		code = m.Run()
	}
	if err := errors.Join(err, env.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newGround(t *testing.T) ground {
	t.Helper()
	api, err := client.New(config, client.Options{})
	must(t, err)
	user, err := env.AddUser(envtest.User{Name: t.Name(), Groups: []string{"system:masters"}}, &rest.Config{})
	must(t, err)
	kubeconfig, err := user.KubeConfig()
	must(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, kubeconfig, 0o600))
	return ground{t, api, ui(t, file)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ui starts `oooi ui` and returns the address that it prints.
func ui(t *testing.T, kubeconfig string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(repository, "bin/oooi"), "ui", "--kubeconfig", kubeconfig)
	c.Stderr, c.Cancel = t.Output(), func() error { return c.Process.Signal(syscall.SIGTERM) }
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Wait() }) // its context has ended
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
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

// create makes objects of YAML, and writes their status, too.
func (g ground) create(text string) {
	g.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		must(g.T, yaml.Unmarshal([]byte(document), object))
		status, has := object.Object["status"]
		must(g.T, g.api.Create(g.Context(), object))
		if gvk := object.GroupVersionKind(); has && gvk.Group == "hostedcluster.densityops.com" {
			object.Object["status"] = status
			must(g.T, g.api.Status().Update(g.Context(), object))
		}
	}
}

// cluster makes an Infra that serves, and its components.
func (g ground) cluster(name string) {
	now := time.Now().UTC().Format(time.RFC3339)
	g.create(strings.NewReplacer("NAME", name, "NOW", now, "CANARY", canary).Replace(infra))
}

// workers boot: of each four one waits for its lease.
func (g ground) workers(cluster string, count int) {
	var group sync.WaitGroup
	queue := make(chan int, count)
	for i := range count {
		queue <- i
	}
	close(queue)
	for range 8 {
		group.Go(func() {
			for i := range queue {
				g.worker(cluster, i, i%4 != 3)
			}
		})
	}
	group.Wait()
}

func ipOf(worker int) string {
	return fmt.Sprintf("192.168.%d.%d", 100+(worker+20)/250, (worker+20)%250)
}

// dials is what the proxy notes of a worker.
func (g ground) dials(cluster string, worker int) {
	g.Helper()
	l := &unstructured.Unstructured{}
	l.SetAPIVersion("hostedcluster.densityops.com/v1alpha1")
	l.SetKind("DHCPLease")
	must(g.T, g.api.Get(g.Context(), client.ObjectKey{Namespace: cluster, Name: cluster + "-dhcp-" + ipOf(worker)}, l))
	stages, _, err := unstructured.NestedSlice(l.Object, "status", "stages")
	must(g.T, err)
	stages = append(stages, map[string]any{"name": "APIHello", "firstTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "serverName": "api." + cluster + ".example.com", "result": "Forwarded"})
	must(g.T, unstructured.SetNestedSlice(l.Object, stages, "status", "stages"))
	must(g.T, g.api.Status().Update(g.Context(), l))
}

func (g ground) worker(cluster string, i int, leased bool) {
	text := machine
	if leased {
		text += lease
	}
	g.create(strings.NewReplacer("NAME", cluster, "WORKER", fmt.Sprintf("%s-w%03d", cluster, i), "IP", ipOf(i),
		"MAC", fmt.Sprintf("52:54:00:%02x:%02x:%02x", len(cluster), i/256, i%256), "NOW", time.Now().UTC().Format(time.RFC3339), "LATER", time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")).Replace(text))
}

// within ends a test that hangs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
