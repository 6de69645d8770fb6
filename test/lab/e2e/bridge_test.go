//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

const (
	dpfNamespace    = "dpf-operator-system"
	dpuRelease      = "e2e.local/ocp/release:4.20.4-multi"
	bootstrapSigner = "kubernetes.io/kube-apiserver-client-kubelet"
	servingSigner   = "kubernetes.io/kubelet-serving"
)

// mayAnnounce lets bridges have MetalLB announce addresses of a network, as an administrator does.
func mayAnnounce(t *testing.T, ctx context.Context, network string) {
	t.Helper()
	manager := []string{"-n", "oooi-system", "deployment", "oooi-controller-manager"}
	patch := `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--bridge-virtual-ips=` + network + `"}]`
	kubectl(t, ctx, append([]string{"patch", "--type=json", "-p", patch}, manager...)...)
	kubectl(t, ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=90s")
	afterwards(t, func(ctx context.Context) error { return lab.DeployOperator(ctx) })
}

// aroundBridges creates what a bridge needs and does not create: DPF's namespace with a DPUCluster and its reference grant, storage for
// etcd, the image mapping, and permission for the Secrets of both namespaces.
func aroundBridges(t *testing.T, ctx context.Context, dpuCluster string) {
	t.Helper()
	apply(t, ctx, fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: provisioning.dpu.nvidia.com/v1alpha1
kind: DPUCluster
metadata: {name: %[2]s, namespace: %[1]s, annotations: {hostedcluster.densityops.com/allowed-namespaces: clusters}}
spec: {type: lab.example.com/hypershift}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: lab, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: lab.example.com/none
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ocp-bluefield-images, namespace: oooi-system}
data: {4.20.4: "e2e.local/bluefield:4.20.4"}
`, dpfNamespace, dpuCluster))
	const role = "config/components/dpu-bridge"
	for _, namespace := range []string{"clusters", dpfNamespace} {
		kubectl(t, ctx, "apply", "-n", namespace, "-k", role)
		afterwards(t, func(ctx context.Context) error {
			_, err := lab.Kubectl(ctx, "delete", "-n", namespace, "--ignore-not-found", "-k", role)
			return err
		})
	}
}

// bridgeYAML is a bridge with its two Secrets, as `oooi bridge create` makes them from files.
func bridgeYAML(t *testing.T, ctx context.Context, name, dpuCluster string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	sshKey, pullSecret := filepath.Join(dir, "id_ed25519.pub"), filepath.Join(dir, "pull-secret.json")
	must(t, os.WriteFile(sshKey, []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f lab\n"), 0o600))
	must(t, os.WriteFile(pullSecret, []byte(`{"auths": {"e2e.local": {"auth": "bGFiOmxhYg=="}}}`), 0o600))
	out, err := lab.Run(ctx, "oooi", append([]string{"bridge", "create", name, "-n", "clusters", "-o", "yaml", "--dpu-cluster", dpfNamespace + "/" + dpuCluster,
		"--base-domain", "dpu.example.com", "--ssh-key", sshKey, "--pull-secret", pullSecret, "--release-image", dpuRelease}, flags...)...)
	must(t, err)
	return out
}

// bridge applies bridges. Those that still exist when the test ends are deleted by force, because nobody removes their DPUs any more.
func bridge(t *testing.T, ctx context.Context, yaml string, names ...string) {
	t.Helper()
	must(t, lab.Apply(ctx, yaml))
	afterwards(t, func(ctx context.Context) error {
		var errs []error
		for _, name := range names {
			_, _ = lab.Kubectl(ctx, "-n", "clusters", "annotate", "dpuhcpbridge", name, "provisioning.dpu.hcp.io/force-delete=true") // it may be gone
			_, err := lab.Kubectl(ctx, "-n", "clusters", "delete", "--ignore-not-found", "dpuhcpbridge/"+name, "secret/"+name+"-ssh-key", "secret/"+name+"-pull-secret")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// bridgeIs waits for a condition of bridge dpu1 and returns its message.
func bridgeIs(t *testing.T, ctx context.Context, kind, status, reason string) string {
	t.Helper()
	return awaitCondition(t, ctx, "clusters", "dpuhcpbridge/dpu1", kind, status, reason)
}

// isMade waits until a bridge's HostedCluster and NodePool exist.
func isMade(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	for _, kind := range []string{"hostedcluster", "nodepool"} {
		kubectl(t, ctx, "-n", "clusters", "wait", "--for=create", kind+"/"+name, "--timeout=60s")
	}
}

// ofBridge lists all objects, of all types, that a bridge has created.
func ofBridge(t *testing.T, ctx context.Context, name string) []string {
	t.Helper()
	types := strings.Fields(kubectl(t, ctx, "api-resources", "--verbs=list", "-o", "name"))
	found := strings.Fields(kubectl(t, ctx, "get", strings.Join(types, ","), "-A", "--ignore-not-found", "-l", "provisioning.dpu.hcp.io/bridge="+name,
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`))
	slices.Sort(found)
	return slices.Compact(found)
}

// dpu creates a DPU that DPF reports as being installed. It has no BFB, so that nobody makes a template for it.
func dpu(t *testing.T, ctx context.Context, name, dpuCluster string) {
	t.Helper()
	apply(t, ctx, fmt.Sprintf(`apiVersion: provisioning.dpu.nvidia.com/v1alpha1
kind: DPU
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  bfb: ""
  dpuFlavor: bluefield
  nodeEffect: {drain: true}
  dpuDeviceName: device-1
  dpuNodeName: host-1
  serialNumber: MT0000000001
  cluster: {name: %[3]s, namespace: %[2]s}
`, name, dpfNamespace, dpuCluster))
	dpuStatus(t, ctx, name, "False")
}

func osInstalled(t *testing.T, ctx context.Context, dpu string) {
	t.Helper()
	dpuStatus(t, ctx, dpu, "True")
}

func dpuStatus(t *testing.T, ctx context.Context, name, installed string) {
	t.Helper()
	kubectl(t, ctx, "-n", dpfNamespace, "patch", "dpu", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"phase":"OS Installing","conditions":[{"type":"OSInstalled","status":%q,"reason":"Lab","message":"","lastTransitionTime":%q}]}}`,
		installed, time.Now().UTC().Format(time.RFC3339)))
}

func kubeconfigOfDPF(t *testing.T, ctx context.Context) string {
	t.Helper()
	return kubectl(t, ctx, "-n", dpfNamespace, "get", "dpucluster", "dpu1", "-o", "jsonpath={.spec.kubeconfig}")
}

// asDPF runs kubectl on the hosted cluster as DPF does, by the Secret that the DPUCluster refers to.
func asDPF(ctx context.Context, args ...string) (string, error) {
	name, err := lab.Kubectl(ctx, "-n", dpfNamespace, "get", "dpucluster", "dpu1", "-o", "jsonpath={.spec.kubeconfig}")
	if err != nil {
		return "", err
	}
	text, err := lab.Kubectl(ctx, "-n", dpfNamespace, "get", "secret", name, "-o", `go-template={{index .data "super-admin.conf" | base64decode}}`)
	if err != nil {
		return "", err
	}
	path := filepath.Join(lab.State, "dpf.kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return lab.Lab(ctx, append([]string{"exec", "kubectl", "--kubeconfig", path}, args...)...)
}

// request is a CSR.
type request struct {
	Metadata struct{ Name string }
	Spec     struct{ SignerName string }
	Status   struct{ Conditions []condition }
}

func requests(ctx context.Context) ([]request, error) {
	out, err := hosted(ctx, "dpu1", "get", "csr", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []request }
	err = json.Unmarshal([]byte(out), &list)
	return list.Items, err
}

// asked waits for the first CSR to a signer in hosted cluster dpu1.
func asked(t *testing.T, ctx context.Context, signer string) (found request) {
	t.Helper()
	must(t, scene.Until(ctx, "a request to "+signer, func(ctx context.Context) error {
		all, err := requests(ctx)
		at := slices.IndexFunc(all, func(r request) bool { return r.Spec.SignerName == signer })
		if at < 0 {
			return errors.Join(fmt.Errorf("there is none among %d", len(all)), err)
		}
		found = all[at]
		return nil
	}))
	return found
}

// approved waits until a CSR is approved, and returns the condition.
func approved(t *testing.T, ctx context.Context, name string) (approval condition) {
	t.Helper()
	must(t, scene.Until(ctx, name+" is approved", func(ctx context.Context) error {
		c, err := decided(ctx, name)
		if len(c) != 1 || c[0].Type != "Approved" {
			return errors.Join(fmt.Errorf("its conditions are %v", c), err)
		}
		approval = c[0]
		return nil
	}))
	return approval
}

// staysPending watches a CSR for as long as the operator may take to approve it, because no event tells that it does not, and has the
// operator's code explain which rules it breaks.
func staysPending(t *testing.T, ctx context.Context, name string, rules ...string) {
	t.Helper()
	if broken := brokenBy(t, ctx, name); !slices.Equal(broken, rules) {
		t.Errorf("request %s breaks the rules %v, want %v", name, broken, rules)
	}
	looked := 0
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); looked++ {
		if c, err := decided(ctx, name); err != nil || len(c) > 0 {
			t.Fatalf("request %s: %v %v; it is to stay pending", name, c, err)
		}
	}
	t.Logf("request %s was seen pending %d times", name, looked)
}

func decided(ctx context.Context, name string) ([]condition, error) {
	all, err := requests(ctx)
	at := slices.IndexFunc(all, func(r request) bool { return r.Metadata.Name == name })
	if at < 0 {
		return nil, errors.Join(fmt.Errorf("there is no request %s", name), err)
	}
	return all[at].Status.Conditions, nil
}

// brokenBy lists the rules that a CSR breaks, by `oooi csr explain`, which connects to the hosted API's published address.
func brokenBy(t *testing.T, ctx context.Context, name string) (broken []string) {
	t.Helper()
	out, err := lab.Lab(ctx, "exec", "oooi", "csr", "explain", name, "--bridge", "dpu1", "-n", "clusters", "-o", "json")
	var report struct {
		Rules []struct {
			Name   string
			Passed bool
		}
	}
	if unread := json.Unmarshal([]byte(out), &report); unread != nil {
		t.Fatal(errors.Join(unread, err))
	}
	for _, r := range report.Rules {
		if !r.Passed {
			broken = append(broken, r.Name)
		}
	}
	return broken
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
