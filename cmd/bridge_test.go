package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

const (
	publicKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f core\n"
	pullSecret = `{"auths": {"quay.io": {"auth": "dTpw"}}}`
)

// ordering are the arguments for a good bridge, with files in a directory, followed by others.
func ordering(t *testing.T, others ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{"key.pub": publicKey, "pull.json": pullSecret, "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", "text": "hunter2"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"create", "dpu1", "-n", "clusters", "--dpu-cluster", "dpf/dpus", "--base-domain", "example.com", "--ssh-key", "DIR/key.pub", "--pull-secret", "DIR/pull.json", "--release-image", "quay.io/ocp/release:4.20.4-multi"}
	args = append(args, others...)
	for i := range args {
		args[i] = strings.Replace(args[i], "DIR", dir, 1)
	}
	return args
}

func bridgeOf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	root := Root()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"bridge"}, args...))
	err := root.Execute()
	return out.String(), err
}

func TestAWordThatIsNoSubcommandIsRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := bridgeOf(t, "foo")
	g.Expect(err).To(MatchError(ContainSubstring(`unknown command "foo" for "oooi bridge"`)))
	g.Expect(ExitCode(err)).To(Equal(unusable))
	out, err := bridgeOf(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("Available Commands:"))
}

func TestABridgeIsPrintedFromFiles(t *testing.T) {
	g := NewWithT(t)
	out, err := bridgeOf(t, ordering(t, "-o", "yaml", "--metallb-virtual-ip", "192.0.2.10", "--expose-through-load-balancer")...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(`---
apiVersion: v1
data:
  id_rsa.pub: c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQkFnTUVCUVlIQ0FrS0N3d05EZzhRRVJJVEZCVVdGeGdaR2hzY0hSNGYgY29yZQo=
kind: Secret
metadata:
  name: dpu1-ssh-key
  namespace: clusters
type: Opaque
---
apiVersion: v1
data:
  .dockerconfigjson: eyJhdXRocyI6IHsicXVheS5pbyI6IHsiYXV0aCI6ICJkVHB3In19fQ==
kind: Secret
metadata:
  name: dpu1-pull-secret
  namespace: clusters
type: kubernetes.io/dockerconfigjson
---
apiVersion: provisioning.dpu.hcp.io/v1alpha1
kind: DPUHCPBridge
metadata:
  name: dpu1
  namespace: clusters
spec:
  baseDomain: example.com
  dpuClusterRef:
    name: dpus
    namespace: dpf
  exposeThroughLoadBalancer: true
  metalLBVirtualIP: 192.0.2.10
  ocpReleaseImage: quay.io/ocp/release:4.20.4-multi
  pullSecret: dpu1-pull-secret
  sshKey: dpu1-ssh-key
`))
}

// All that the largest sample has can be ordered by flags, except other names of the same field.
func TestEveryFieldOfABridgeHasAFlag(t *testing.T) {
	g := NewWithT(t)
	full := read[dpuv1.DPUHCPBridge](t, "../config/samples/dpuhcpbridge-full.yaml")
	full.Spec.VirtualIP, full.Spec.MachineOSURL = "", ""
	out, err := bridgeOf(t, ordering(t, "-o", "yaml", "--dpu-cluster", "dpf-operator-system/dpu2", "--dpu-deployment", "dpf-operator-system/ovn-hbn",
		"--manage-dpu-service-templates", "--release-image", string(full.Spec.OCPReleaseImage), "--etcd-storage-class", "ocs-storagecluster-ceph-rbd",
		"--control-plane-availability-policy", "HighlyAvailable", "--infrastructure-availability-policy", "SingleReplica",
		"--expose-through-load-balancer", "--metallb-virtual-ip", "192.0.2.10", "--cluster-type", "example.com/hypershift", "--flannel-enabled",
		"--cluster-network", "10.132.0.0/14", "--host-prefix", "23", "--service-network", "172.31.0.0/16", "--machine-network", "198.51.100.0/24",
		"--node-selector", "node-role.kubernetes.io/control-plane=", "--dpu-cluster-deletion-policy", "Delete", "--rebootstrap", "Never",
		"--machine-os-image", "quay.io/example/rhcos-bluefield:4.20.4")...)
	g.Expect(err).NotTo(HaveOccurred())
	ordered := dpuv1.DPUHCPBridge{}
	g.Expect(yaml.UnmarshalStrict([]byte(out[strings.LastIndex(out, "---"):]), &ordered)).To(Succeed())
	g.Expect(ordered.Spec).To(Equal(full.Spec))

	out, err = bridgeOf(t, ordering(t, "-o", "yaml", "--dpu-deployment", "ovn-hbn", "--flannel-enabled=false", "--service-network", "172.30.0.0/16")...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(ContainSubstring("dpuDeploymentRef:\n    name: ovn-hbn\n"), ContainSubstring("flannelEnabled: false\n"), ContainSubstring("networking:\n    serviceNetwork:\n    - cidr: 172.30.0.0/16\n  ocp")))
}

// What -o yaml prints is for Git; --dry-run has it judged by the schema and the webhook before.
func TestAPrintedBridgeMayBeJudgedByTheCluster(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.Expect(os.WriteFile(filepath.Join(s.dir, "key.pub"), []byte(publicKey), 0o600)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(s.dir, "pull.json"), []byte(pullSecret), 0o600)).To(Succeed())
	s.runs("kubectl create namespace clusters")
	const create = `oooi bridge create dpu1 -n clusters --dpu-cluster dpu1 --base-domain example.com --ssh-key key.pub --pull-secret pull.json \
		--release-image quay.io/ocp/release:4.20.4-multi -o yaml `
	s.runs(create + "--host-prefix 8 > unjudged.yaml")
	s.Expect(s.runs("! " + create + "--dry-run --cluster-network 10.132.0.0/14 --host-prefix 8 2>&1 > none")).To(ContainSubstring("it must be longer than that of cidr"))
	s.Expect(s.runs("cat none")).To(BeEmpty())
	s.Expect(s.runs(create + "--dry-run > judged.yaml")).To(ContainSubstring("DPUHCPBridge clusters/dpu1 would be applied"))
	s.Expect(s.runs("kubectl get dpuhcp,secrets -n clusters 2>&1")).To(ContainSubstring("No resources found"))
	s.Expect(s.runs("kubectl apply -f judged.yaml")).To(ContainSubstring("dpuhcpbridge.provisioning.dpu.hcp.io/dpu1 created"))
}

// guidesObjects have the names of NVIDIA's guide (doca-platform, docs/public/user-guides/host-trusted/use-cases/hbn).
const guidesObjects = `
for namespace in clusters clusters-dpu1 dpf-operator-system oooi-system; do kubectl create namespace $namespace; done
kubectl apply -n dpf-operator-system -f - <<E
{apiVersion: operator.dpu.nvidia.com/v1alpha1, kind: DPFOperatorConfig, metadata: {name: dpfoperatorconfig}, spec: {deploymentMode: host-trusted, provisioningController: {bfbPVCName: bfb-pvc, bfCFGTemplateConfigMap: old}}}
---
{apiVersion: provisioning.dpu.nvidia.com/v1alpha1, kind: DPUFlavor, metadata: {name: dpf-provisioning-hbn}, spec: {}}
---
{apiVersion: svc.dpu.nvidia.com/v1alpha1, kind: DPUDeployment, metadata: {name: hbn-only}, spec: {dpus: {bfb: bf-bundle, flavor: dpf-provisioning-hbn, dpuSets: [{nameSuffix: dpuset1}]}, services: {doca-hbn: {serviceTemplate: doca-hbn, serviceConfiguration: doca-hbn}}, serviceChains: {switches: [{ports: [{serviceInterface: {matchLabels: {uplink: p0}}}]}]}}}
E
`

// The commands of the page are accepted by DPF's own CRDs, in their order, and leave what the page says. Whether DPUs join is the lab's to show.
func TestThePageOnBridgesLeadsToDPUs(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.Expect(os.Mkdir(filepath.Join(s.dir, ".ssh"), 0o700)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(s.dir, ".ssh", "id_ed25519.pub"), []byte(publicKey), 0o600)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(s.dir, "pull-secret.json"), []byte(pullSecret), 0o600)).To(Succeed())
	s.env = append(s.env, "HOME="+s.dir)
	s.runs(guidesObjects)
	_, walk, _ := strings.Cut(pages(t)["docs/DPU_BRIDGE.md"], "## From nothing to DPUs\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	all := blocks(walk)
	s.Expect(all).To(HaveLen(7))
	for _, b := range all[:6] {
		if b.kind == "yaml" {
			b.text = "kubectl apply -f - <<E" + strings.ReplaceAll("\n"+b.text, "\n   ", "\n") + "E\n"
		}
		s.runs(b.text)
	}
	s.Expect(s.runs(strings.TrimSpace(all[6].text) + " 2>&1 || [ $? = 1 ]")).To(ContainSubstring("bridge clusters/dpu1 is not ready"))
	of := func(what string) string { return s.runs("kubectl get -o json " + what) }
	s.Expect(of("dpfoperatorconfig dpfoperatorconfig -n dpf-operator-system")).To(And(ContainSubstring("staticClusterManager"), ContainSubstring(`"enableDynamicBFCFGTemplates": true`), Not(ContainSubstring("bfCFGTemplateConfigMap\": \""))))
	s.Expect(of("dpuflavor dpf-provisioning-hbn -n dpf-operator-system")).To(ContainSubstring("skip-bfcfg-size-check"))
	s.Expect(of("dpuhcp dpu1 -n clusters")).To(MatchRegexp(`"dpuDeploymentRef": {\s+"name": "hbn-only",\s+"namespace": "dpf-operator-system"`))
	for _, namespace := range []string{"clusters", "clusters-dpu1", "dpf-operator-system"} {
		s.Expect(s.runs("kubectl auth can-i get secrets -n " + namespace + " --as system:serviceaccount:oooi-system:oooi-controller-manager")).To(Equal("yes\n"))
	}
}

func TestThePageOnBridgesHasImagesCopied(t *testing.T) {
	s := newShell(t)
	s.runs("kubectl create namespace oooi-system; kubectl create -n oooi-system configmap ocp-bluefield-images --from-literal=repository=registry.example.com/rhcos")
	var block string
	for _, b := range blocks(pages(t)["docs/DPU_BRIDGE.md"]) {
		if strings.Contains(b.text, "image-cache") {
			block = b.text
		}
	}
	s.runs(block)
	s.Expect(s.runs("kubectl get -n oooi-system configmap ocp-bluefield-images -o jsonpath={.data.cache}")).To(Equal("oooi-images"))
	s.runs("kubectl create namespace copies; kubectl kustomize config/components/image-cache | sed s/oooi-images/copies/ | kubectl apply -n copies -f -")
	for _, namespace := range []string{"oooi-images", "copies"} {
		s.Expect(s.runs("kubectl auth can-i create serviceaccounts/oooi-image-cache --subresource=token -n " + namespace + " --as system:serviceaccount:oooi-system:oooi-controller-manager")).To(Equal("yes\n"))
		pushes := `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "system:serviceaccount:` + namespace + `:oooi-image-cache",
			"resourceAttributes": {"namespace": "` + namespace + `", "verb": "update", "group": "image.openshift.io", "resource": "imagestreams", "subresource": "layers"}}}`
		s.Expect(s.runs("kubectl create -f - -o jsonpath={.status.allowed} <<'E'\n" + pushes + "\nE\n")).To(Equal("true"))
	}
}

func TestABridgeThatCannotBeMadeIsUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		others []string
		says   string
	}{
		"a private key":            {[]string{"--ssh-key", "DIR/key"}, "--ssh-key has a private key in id_rsa.pub; put the public one there"},
		"no pull secret":           {[]string{"--pull-secret", "DIR/text"}, "--pull-secret has no JSON of a pull secret"},
		"a file that is not there": {[]string{"--pull-secret", "DIR/missing"}, "missing: no such file"},
		"another output":           {[]string{"-o", "json"}, "--output json: use yaml, or omit it"},
		"a flag that is none":      {[]string{"--vip", "192.0.2.10"}, "unknown flag"},
		"two names":                {[]string{"dpu2"}, "give one name, not 2 (dpu1, dpu2): oooi bridge create NAME"},
		"no cluster":               {nil, "finding the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := bridgeOf(t, ordering(t, c.others...)...)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(ExitCode(err)).To(Equal(2))
			g.Expect(out + err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestStatusIsUnusableWithoutABridge(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name: oooi bridge status NAME":               {"status"},
		"--output yaml: write table or json":                   {"status", "dpu1", "-o", "yaml"},
		"context was not found for specified context: missing": {"status", "dpu1", "--context", "missing"},
		`required flag(s) "base-domain", "dpu-cluster`:         {"create", "dpu1"},
	} {
		_, err := bridgeOf(t, args...)
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring(says)))
		g.Expect(ExitCode(err)).To(Equal(2))
	}
}
