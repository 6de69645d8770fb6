// Package envtest starts a real kube-apiserver and etcd for a test, with the garbage collector, our CRDs and those of the kinds that we
// read, and the admission plugin that OpenShift enables.
package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// Cluster is a control plane without nodes.
type Cluster struct {
	// Admin may do anything.
	Admin *rest.Config
	// Manager may do what config/rbac allows the operator, and Bridges what it allows an operator that serves only bridges.
	Manager, Bridges *rest.Config

	env       *envtest.Environment
	tokens    map[string]string // by user
	collector *exec.Cmd
}

// Patience limits the wait for each process to start or end, and for CRDs: under load they take much longer than controller-runtime's 20 s
// and 10 s.
const Patience = 2 * time.Minute

// root is the repository's, above the directory of the test or benchmark.
func root() string {
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "config/crd/bases")); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	return dir
}

// Start starts a cluster with our CRDs and, unless bare, those of HyperShift, OpenShift and Multus.
func Start(bare bool) (*Cluster, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New(`KUBEBUILDER_ASSETS is not set: run "make test", or eval "$(test/lab/lab env)" after "test/lab/lab build assets"`)
	}
	c := &Cluster{env: environment(assets)}
	c.env.CRDInstallOptions = envtest.CRDInstallOptions{Paths: []string{filepath.Join(root(), "config/crd/bases")}, ErrorIfPathMissing: true, MaxTime: Patience}
	c.env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	// Namespaces are never emptied here, so each test's Services stay.
	c.env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	file, err := c.makeTokens()
	if err != nil {
		return nil, fmt.Errorf("making users' tokens: %w", err)
	}
	defer func() { _ = os.Remove(file) }() // kube-apiserver reads it once
	c.env.ControlPlane.GetAPIServer().Configure().Set("token-auth-file", file)
	if c.Admin, err = started(c.env); err != nil {
		return nil, fmt.Errorf("starting kube-apiserver: %w", err)
	}
	c.Admin.QPS = -1
	if !bare {
		err = c.InstallForeign()
	}
	if err = errors.Join(err, c.addManagers(), c.collect(assets)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// environment is a control plane whose processes, which inherit GOGC, collect garbage a quarter as often, because controllers' tests are bound
// by processor time (docs/adr/0012-tests-side-by-side.md).
func environment(assets string) *envtest.Environment {
	_ = os.Setenv("GOGC", "400") // it fails for a malformed name only
	return &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: Patience, ControlPlaneStopTimeout: Patience}
}

// Environ is the environment without what is meant for the control plane's processes: with it, a program under measurement runs as it would.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
}

// started also waits for the default namespace, which envtest expects within 5 s (server.go, waitForDefaultNamespace): it connects again to
// the running control plane. One that did not start is stopped.
func started(env *envtest.Environment) (*rest.Config, error) {
	config, err := env.Start()
	for end := time.Now().Add(Patience); wait.Interrupted(err) && env.Config != nil && time.Now().Before(end); {
		env.UseExistingCluster = ptr.To(true)
		config, err = env.Start()
	}
	env.UseExistingCluster = nil // or Stop would leave it running
	if err != nil {
		err = errors.Join(err, env.Stop())
	}
	return config, err
}

// Stop ends everything.
func (c *Cluster) Stop() error {
	if c.collector != nil {
		_ = c.collector.Process.Kill()
		_ = c.collector.Wait() // an error, because it was killed
	}
	return c.env.Stop()
}

// InstallForeign installs the CRDs of the kinds that a cluster may lack.
func (c *Cluster) InstallForeign() error {
	crds, err := Foreign()
	if err != nil {
		return err
	}
	return c.Install(crds...)
}

// Install installs CRDs, and waits until they are served.
func (c *Cluster) Install(crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if _, err := envtest.InstallCRDs(c.Admin, envtest.CRDInstallOptions{CRDs: crds, MaxTime: Patience}); err != nil {
		return fmt.Errorf("installing the CRDs of others: %w", err)
	}
	return nil
}

// collect runs Kubernetes' own garbage collector, so that dependents are deleted by ownerReference.
func (c *Cluster) collect(assets string) error {
	kubeconfig, err := yaml.Marshal(Kubeconfig(c.Admin.Host, c.Admin.CAData, c.as(collector)))
	if err != nil {
		return err
	}
	path := filepath.Join(c.env.ControlPlane.GetAPIServer().CertDir, "collector.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	c.collector = exec.Command(filepath.Join(assets, "kube-controller-manager"), //nolint:gosec // the lab's own build
		"--kubeconfig="+path, "--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")
	return c.collector.Start()
}

// PauseCollector stops the garbage collector until goOn, as if it had much to do.
func (c *Cluster) PauseCollector() (goOn func() error, err error) {
	return func() error { return c.collector.Process.Signal(syscall.SIGCONT) }, c.collector.Process.Signal(syscall.SIGSTOP)
}

// Managers are the users Manager and Bridges: a test that grants them more binds it to both.
var Managers = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "oooi-manager"}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "oooi-bridges"}}

// addManagers adds users with the operator's own ClusterRoles, so that a test finds what these lack.
func (c *Cluster) addManagers() error {
	admin, err := client.New(c.Admin, client.Options{})
	if err != nil {
		return err
	}
	for file, who := range map[string][]rbacv1.Subject{"role.yaml": Managers, "vlan_role.yaml": Managers[:1], "bridge_role.yaml": Managers} {
		role := &rbacv1.ClusterRole{}
		if err := readYAML(filepath.Join(root(), "config/rbac", file), role); err != nil {
			return err
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: who,
		}
		if err := errors.Join(admin.Create(context.Background(), role), admin.Create(context.Background(), binding)); err != nil {
			return err
		}
	}
	c.Manager, c.Bridges = c.as(Managers[0].Name), c.as(Managers[1].Name)
	return nil
}

// Objects decodes the documents of a YAML text.
func Objects(text []byte, scheme *kruntime.Scheme) ([]client.Object, error) {
	var all []client.Object
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		kind := metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		made, err := scheme.New(kind.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(document, made); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		all = append(all, made.(client.Object))
	}
	return all, nil
}

func readYAML(path string, into any) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
