//go:build e2e

package e2e

import (
	"context"
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

// A DPU joins the hosted cluster of a bridge, from the bridge's creation to its deletion. The stand-in plays HyperShift: it starts the
// HostedCluster that the operator creates, and approves no certificate. The test plays DPF: it reports the DPU's progress, and removes its
// Node. MetalLB is the real one. The DPU is a virtual machine with a real kubelet (of amd64, as this machine), on a VLAN that an Infra
// serves.
func TestADPUJoinsThroughItsBridge(t *testing.T) {
	ctx := within(t, 15*time.Minute)
	aroundBridges(t, ctx, "dpu1")
	vlan80(t, ctx)
	mayAnnounce(t, ctx, bridgeVIP+"/32")
	before := everyObject(t, ctx)
	m := scene.Machine{Name: "dpu-1", MAC: "52:54:00:00:80:01", Cluster: "dpu1", Bridge: "br80"}

	bridge(t, ctx, bridgeYAML(t, ctx, "dpu1", "dpu1", "--control-plane-availability-policy", "SingleReplica", "--expose-through-load-balancer", "--metallb-virtual-ip", bridgeVIP), "dpu1")
	bridgeIs(t, ctx, "MetalLBConfigured", "False", "MetalLBNotInstalled")
	uninstall := loadBalancer(t, ctx)
	approvesNothingHere(t, ctx)
	hostedClusterComesUp(t, ctx)
	kubeconfigIsInjected(t, ctx)
	bridgeIs(t, ctx, "CSRAutoApprovalActive", "True", "")
	bridgeIs(t, ctx, "Ready", "True", "")
	rotatedKubeconfigIsInjected(t, ctx)
	upgrades(t, ctx)
	_, err := lab.Run(ctx, "oooi", "bridge", "status", "dpu1", "-n", "clusters")
	must(t, err)

	apply(t, ctx, infraOfDPUs)
	awaitCondition(t, ctx, "clusters", "infra/dpu1", "Ready", "True", "")
	dpu(t, ctx, "dpu-1", "dpu1")
	joinsOnceInstalled(t, ctx, m)
	joinedIsNotLetInAgain(t, ctx, m)
	recreatedIsLetInAgain(t, ctx, m)

	waitsForItsDPUs(t, ctx, m)
	goesInOrder(t, ctx)
	kubectl(t, ctx, "-n", "clusters", "delete", "infra", "dpu1", "--timeout=90s")
	kubectl(t, ctx, "-n", "clusters", "delete", "secret", "dpu1-ssh-key", "dpu1-pull-secret")
	must(t, uninstall(ctx))
	must(t, scene.Until(ctx, "nothing left", func(context.Context) error {
		if left := without(everyObject(t, ctx), before); len(left) > 0 {
			return fmt.Errorf("not there before, and there now: %v", left)
		}
		return nil
	}))
}

const (
	bridgeVIP  = "203.0.113.30"
	dpuAddress = "192.168.80.21"
)

// The DPU gets its name by DHCP, where DPF's bf.cfg would write it.
const infraOfDPUs = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: dpu1, namespace: clusters}
spec:
  hostedClusterRef: {name: dpu1}
  networkConfig: {cidr: 192.168.80.0/24, networkAttachmentDefinition: vlan80, networkAttachmentNamespace: default}
  infraComponents: {dhcp: {reservations: [{mac: "52:54:00:00:80:01", ip: ` + dpuAddress + `, hostname: dpu-1}]}}
`

func vlan80(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := lab.Lab(ctx, "vlan", "80")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan80", "br80"))
}

// loadBalancer installs the real MetalLB, from its own manifest, on the management cluster, and has c1 keep its address.
func loadBalancer(t *testing.T, ctx context.Context) (uninstall func(context.Context) error) {
	t.Helper()
	for _, image := range []string{"controller", "speaker"} {
		_, err := lab.Lab(ctx, "load", filepath.Join(os.Getenv("LAB_IMAGES"), image+".tar"))
		must(t, err)
	}
	path := metallb(t, ctx)
	uninstall = func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "delete", "--ignore-not-found", "--wait", "-f", path)
		return err
	}
	afterwards(t, uninstall)
	kubectl(t, ctx, "apply", "-f", path)
	kubectl(t, ctx, "apply", "-n", "metallb-system", "-k", "config/components/metallb") // deleted with the namespace
	kubectl(t, ctx, "-n", "metallb-system", "rollout", "status", "deployment/controller", "--timeout=120s")
	must(t, scene.Until(ctx, "MetalLB takes a pool", func(ctx context.Context) error {
		return lab.Apply(ctx, `apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: c1, namespace: metallb-system}
spec: {addresses: [203.0.113.10/32], serviceAllocation: {namespaces: [clusters-c1]}}
`)
	}))
	return uninstall
}

// approvesNothingHere: the operator may not approve certificates of the management cluster, whatever namespaces were granted.
func approvesNothingHere(t *testing.T, ctx context.Context) {
	t.Helper()
	mayI := func(question ...string) string {
		question = append([]string{"auth", "can-i"}, question...)
		out, _ := lab.Kubectl(ctx, append(question, "--as=system:serviceaccount:oooi-system:oooi-controller-manager")...) // a no is an error
		return strings.TrimSpace(out)
	}
	if got := mayI("list", "dpuhcpbridges.provisioning.dpu.hcp.io"); got != "yes" {
		t.Fatalf("the operator may read bridges: %q; nothing else that is asked for it means anything", got)
	}
	for _, question := range []string{
		"update certificatesigningrequests --subresource=approval", "patch certificatesigningrequests --subresource=approval",
		"update certificatesigningrequests --subresource=status", "create certificatesigningrequests",
		"approve signers.certificates.k8s.io", "approve signers.certificates.k8s.io/kubernetes.io/kube-apiserver-client-kubelet",
	} {
		if got := mayI(strings.Fields(question)...); got != "no" {
			t.Errorf("may the operator %s on the management cluster? %q", question, got)
		}
	}
}

// hostedClusterComesUp waits for the hosted cluster that the operator created.
func hostedClusterComesUp(t *testing.T, ctx context.Context) {
	t.Helper()
	isMade(t, ctx, "dpu1")
	const pool = "{.spec.clusterName} {.spec.arch} {.spec.replicas} {.spec.platform.type} {.spec.release.image}"
	if got, want := kubectl(t, ctx, "-n", "clusters", "get", "nodepool", "dpu1", "-o", "jsonpath="+pool), "dpu1 arm64 0 None "+dpuRelease; got != want {
		t.Errorf("the NodePool is %q, want %q", got, want)
	}
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Standin(ctx, "delete", "--cluster", "dpu1")
		return err
	})
	began := time.Now()
	_, err := lab.Standin(ctx, "adopt", "--cluster", "dpu1")
	must(t, err)
	t.Logf("the control plane serves after %.1f s", time.Since(began).Seconds())
	if host := field(t, ctx, "hostedcluster/dpu1", ".status.controlPlaneEndpoint.host"); host != bridgeVIP {
		t.Errorf("MetalLB has given the hosted API the address %q, want %s", host, bridgeVIP)
	}
	if run := kubectl(t, ctx, "-n", "clusters-dpu1", "get", "deployments", "-o", "name"); strings.Contains(run, "approver") || !strings.Contains(run, "kube-apiserver") {
		t.Fatalf("the control plane must have no approver of its own; it runs %s", run)
	}
	bridgeIs(t, ctx, "HostedClusterAvailable", "True", "AsExpected")
	bridgeIs(t, ctx, "HostedClusterProgressing", "False", "AsExpected")
	bridgeIs(t, ctx, "EtcdRecoveryActive", "Unknown", "NotReported")
}

// kubeconfigIsInjected: it is where DPF looks for it, and works.
func kubeconfigIsInjected(t *testing.T, ctx context.Context) {
	t.Helper()
	bridgeIs(t, ctx, "KubeconfigInjected", "True", "")
	awaitCondition(t, ctx, dpfNamespace, "dpucluster/dpu1", "Created", "True", "")
	out, err := asDPF(ctx, "get", "--raw", "/readyz")
	must(t, err)
	if strings.TrimSpace(out) != "ok" {
		t.Errorf("the hosted API says %q to DPF", out)
	}
}

// rotatedKubeconfigIsInjected: DPF has the new one within 10 s, and approval uses it.
func rotatedKubeconfigIsInjected(t *testing.T, ctx context.Context) {
	t.Helper()
	rotate, admin, nobody := kubeconfigs(t, ctx, "dpu1")
	whoIsDPF := func() string {
		out, err := asDPF(ctx, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		must(t, err)
		return out
	}
	before := whoIsDPF()
	injected := func(kubeconfig, what string, as func(who string) bool) {
		at := rotate(kubeconfig)
		must(t, scene.Until(ctx, what, func(context.Context) error {
			if who := whoIsDPF(); !as(who) {
				return fmt.Errorf("DPF is %s to the hosted API", who)
			}
			return nil
		}))
		inTime(t, what, at, 10*time.Second)
	}
	injected(nobody, "another kubeconfig reached DPF", func(who string) bool { return who != before })
	bridgeIs(t, ctx, "CSRAutoApprovalActive", "False", "")
	injected(admin, "the administrator's reached DPF", func(who string) bool { return who == before })
	bridgeIs(t, ctx, "CSRAutoApprovalActive", "True", "")
}

// upgrades: HostedCluster and NodePool get a new release of the bridge. One without a mapped image is refused.
func upgrades(t *testing.T, ctx context.Context) {
	t.Helper()
	const next = "e2e.local/ocp/release:4.20.5-multi"
	release := func(image string) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "dpuhcpbridge", "dpu1", "--type=merge", "-p", `{"spec":{"ocpReleaseImage":"`+image+`"}}`)
		return err
	}
	if err := release(next); err == nil || !strings.Contains(err.Error(), "BlueFieldContainerImageAvailable") {
		t.Errorf("release %s, which no image is mapped to: %v", next, err)
	}
	kubectl(t, ctx, "-n", "oooi-system", "patch", "configmap", "ocp-bluefield-images", "--type=merge", "-p", `{"data":{"4.20.5":"e2e.local/bluefield:4.20.5"}}`)
	must(t, release(next))
	for _, object := range []string{"hostedcluster/dpu1", "nodepool/dpu1"} {
		kubectl(t, ctx, "-n", "clusters", "wait", "--for=jsonpath={.spec.release.image}="+next, object, "--timeout=30s")
	}
}

// joinsOnceInstalled: the kubelet's certificate waits until DPF reports that the operating system is installed, and for nothing else.
func joinsOnceInstalled(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	console, err := lab.PowerOn(ctx, m)
	must(t, err)
	afterwards(t, func(ctx context.Context) error { return lab.PowerOff(ctx, m) })
	for _, stage := range []string{"lease", "names", "ignition", "api"} {
		at, err := console.Await(ctx, stage)
		must(t, err)
		t.Logf("%5.1f s %s %s", at.Uptime.Seconds(), stage, at.Detail)
	}
	asks := asked(t, ctx, bootstrapSigner)
	staysPending(t, ctx, asks.Metadata.Name, "OSInstalled")

	osInstalled(t, ctx, m.Name)
	installed := time.Now()
	approval := approved(t, ctx, asks.Metadata.Name)
	t.Logf("approved %.1f s after the DPU's operating system was installed: %s: %s", time.Since(installed).Seconds(), approval.Reason, approval.Message)
	for _, part := range []string{"clusters/dpu1", "dpu-1"} {
		if approval.Reason != "DPUMayJoin" || !strings.Contains(approval.Message, part) {
			t.Errorf("the approval says %s: %s; want DPUMayJoin, and %s named", approval.Reason, approval.Message, part)
		}
	}
	serving := approved(t, ctx, asked(t, ctx, servingSigner).Metadata.Name)
	if serving.Reason != "NodeMayServe" {
		t.Errorf("the serving certificate's approval says %s: %s", serving.Reason, serving.Message)
	}
	nodeIsReady(t, ctx, m)
	t.Run("a pod's log comes by the serving certificate", func(t *testing.T) { runsPod(t, ctx, "dpu1", "on-dpu-1", m.Name) })
}

func nodeIsReady(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	for _, event := range []string{"create", "condition=Ready"} {
		_, err := hosted(ctx, m.Cluster, "wait", "--for="+event, "node/"+m.Name, "--timeout=120s")
		must(t, err)
	}
}

// joinedIsNotLetInAgain: a CSR in the name of a DPU that has joined may be somebody else's, even with that DPU's own credentials.
func joinedIsNotLetInAgain(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	request, err := lab.Run(ctx, "openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-keyout", filepath.Join(t.TempDir(), "key"), "-subj", "/O=system:nodes/CN=system:node:"+m.Name)
	must(t, err)
	text := fmt.Sprintf(`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: %s}, spec: {request: %s, signerName: %s, usages: [digital signature, client auth]}}`,
		again, encoded(request), bootstrapSigner)
	_, err = lab.On(ctx, m, "echo", encoded(text), "| base64 -d | kubectl --kubeconfig=/etc/kubernetes/kubeconfig create --validate=false -f -")
	must(t, err)
	staysPending(t, ctx, again, "NodeInactive", "OneInFifteenMinutes")
}

// again is the CSR of joinedIsNotLetInAgain.
const again = "dpu-1-again"

// recreatedIsLetInAgain: DPF provisions the card again. The CSR that was not approved in its earlier life is not its own.
func recreatedIsLetInAgain(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	removedByDPF(t, ctx, m)
	dpu(t, ctx, "dpu-1", "dpu1")
	osInstalled(t, ctx, m.Name)
	console, err := lab.PowerOn(ctx, m)
	must(t, err)
	nodeIsReady(t, ctx, m)
	t.Logf("%s was Ready again %.1f s after power-on", m.Name, time.Since(console.PoweredOn).Seconds())
	staysPending(t, ctx, again, "AskedInItsLife", "NodeInactive", "OneInFifteenMinutes", "Newest")
}

// removedByDPF removes a DPU: its power, its Node, which DPF deletes by the injected kubeconfig, and then the object.
func removedByDPF(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	must(t, lab.PowerOff(ctx, m))
	_, err := asDPF(ctx, "delete", "node", m.Name)
	must(t, err)
	kubectl(t, ctx, "-n", dpfNamespace, "delete", "dpu", m.Name)
}

func waitsForItsDPUs(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	kubectl(t, ctx, "-n", "clusters", "delete", "dpuhcpbridge", "dpu1", "--wait=false")
	if message := bridgeIs(t, ctx, "HostedClusterCleanup", "False", "DPUsAttached"); !strings.Contains(message, "dpu-1") {
		t.Errorf("the message does not name the DPU: %s", message)
	}
	if at := field(t, ctx, "hostedcluster/dpu1", ".metadata.deletionTimestamp"); at != "" {
		t.Errorf("the HostedCluster is being deleted since %s, and DPF needs it", at)
	}
	removedByDPF(t, ctx, m)
}

// goesInOrder: HostedCluster and NodePool are deleted first, then the kubeconfig, then all else.
func goesInOrder(t *testing.T, ctx context.Context) {
	t.Helper()
	made := ofBridge(t, ctx, "dpu1")
	for _, kind := range []string{"HostedCluster", "NodePool", "Secret", "ConfigMap", "IPAddressPool", "L2Advertisement"} {
		if !slices.ContainsFunc(made, func(o string) bool { return strings.HasPrefix(o, kind+"/") }) {
			t.Errorf("no %s is the bridge's: %v", kind, made)
		}
	}
	bridgeIs(t, ctx, "HostedClusterCleanup", "False", "InProgress")
	for _, object := range []string{"hostedcluster/dpu1", "nodepool/dpu1"} {
		must(t, scene.Until(ctx, object+" is being deleted", func(context.Context) error {
			if field(t, ctx, object, ".metadata.deletionTimestamp") == "" {
				return fmt.Errorf("it has no deletionTimestamp")
			}
			return nil
		}))
	}
	if kubeconfigOfDPF(t, ctx) == "" {
		t.Error("the DPUCluster has lost its kubeconfig before the HostedCluster was gone")
	}
	_, err := lab.Standin(ctx, "delete", "--cluster", "dpu1")
	must(t, err)
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "dpuhcpbridge/dpu1", "--timeout=60s")
	if name := kubeconfigOfDPF(t, ctx); name != "" {
		t.Errorf("the DPUCluster still refers to Secret %s", name)
	}
	if left := ofBridge(t, ctx, "dpu1"); len(left) > 0 {
		t.Errorf("left of the bridge: %v", left)
	}
}

// Nobody refuses the second bridge while the operator is down; both exist when it starts.
func TestOfTwoBridgesForOneDPUClusterOneWins(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	aroundBridges(t, ctx, "twins")
	yaml := bridgeYAML(t, ctx, "twin-a", "twins") + "---\n" + bridgeYAML(t, ctx, "twin-b", "twins")
	must(t, manager(ctx, 0))
	bridge(t, ctx, yaml, "twin-a", "twin-b")
	must(t, manager(ctx, 1))

	winner, loser := "twin-a", "twin-b"
	must(t, scene.Until(ctx, "one is bound", func(ctx context.Context) error {
		for _, name := range []string{"twin-a", "twin-b"} {
			c, err := conditionOf(ctx, "clusters", "dpuhcpbridge/"+name, "DPUClusterBound")
			if err != nil {
				return err
			}
			switch c.Status {
			case "True":
				winner = name
			case "False":
				loser = name
			default:
				return fmt.Errorf("%s is %+v", name, c)
			}
		}
		return nil
	}))
	if winner == loser {
		t.Fatalf("%s is bound and is not: both have the same answer", winner)
	}
	if message := awaitCondition(t, ctx, "clusters", "dpuhcpbridge/"+loser, "DPUClusterBound", "False", "DPUClusterTaken"); !strings.Contains(message, "twins") {
		t.Errorf("the message does not name the DPUCluster: %s", message)
	}
	isMade(t, ctx, winner)
	if made := ofBridge(t, ctx, loser); len(made) > 0 {
		t.Errorf("made for %s, which is not bound: %v", loser, made)
	}

	refusedAtAdmission(t, ctx, bridgeYAML(t, ctx, "twin-c", "twins"), "DPUCluster "+dpfNamespace+"/twins")

	version := func() string { return field(t, ctx, "hostedcluster/"+winner, ".metadata.resourceVersion") }
	undisturbed := version()
	kubectl(t, ctx, "-n", "clusters", "delete", "dpuhcpbridge", loser, "--timeout=60s")
	if now := version(); now != undisturbed {
		t.Errorf("the winner's HostedCluster was written while the other went: version %s, was %s", now, undisturbed)
	}
	kubectl(t, ctx, "-n", "clusters", "delete", "dpuhcpbridge", winner, "--timeout=60s")
}

// The DPU is never removed: the annotation ends the wait, and the DPU stays.
func TestABridgeIsForcedToGo(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	aroundBridges(t, ctx, "forced")
	bridge(t, ctx, bridgeYAML(t, ctx, "forced", "forced"), "forced")
	isMade(t, ctx, "forced")
	dpu(t, ctx, "left-behind", "forced")
	kubectl(t, ctx, "-n", "clusters", "delete", "dpuhcpbridge", "forced", "--wait=false")
	if message := awaitCondition(t, ctx, "clusters", "dpuhcpbridge/forced", "HostedClusterCleanup", "False", "DPUsAttached"); !strings.Contains(message, "force-delete") {
		t.Errorf("the message does not say how to end the wait: %s", message)
	}
	if at := field(t, ctx, "hostedcluster/forced", ".metadata.deletionTimestamp"); at != "" {
		t.Errorf("the HostedCluster is being deleted since %s, before anybody has forced it", at)
	}
	kubectl(t, ctx, "-n", "clusters", "annotate", "dpuhcpbridge", "forced", "provisioning.dpu.hcp.io/force-delete=true")
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "dpuhcpbridge/forced", "--timeout=60s")
	if left := ofBridge(t, ctx, "forced"); len(left) > 0 {
		t.Errorf("left of the bridge: %v", left)
	}
	kubectl(t, ctx, "-n", dpfNamespace, "get", "dpu", "left-behind")
}

// refusedAtAdmission waits for the refusal, because a webhook that does not answer yet refuses nothing.
func refusedAtAdmission(t *testing.T, ctx context.Context, yaml, because string) {
	t.Helper()
	must(t, scene.Until(within(t, 30*time.Second), "a refusal", func(context.Context) error {
		_, err := lab.Pipe(ctx, yaml, "kubectl", "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), because) {
			return errors.Join(fmt.Errorf("want a refusal with %q in it", because), err)
		}
		t.Log(err)
		return nil
	}))
}
