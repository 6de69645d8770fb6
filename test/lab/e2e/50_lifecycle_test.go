//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

func manager(ctx context.Context, replicas int) error {
	if _, err := lab.Kubectl(ctx, "-n", "oooi-system", "scale", "deployment/oooi-controller-manager", fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		return err
	}
	if replicas == 0 {
		_, err := lab.Kubectl(ctx, "-n", "oooi-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=manager", "--timeout=60s")
		return err
	}
	_, err := lab.Kubectl(ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=60s")
	return err
}

func TestNothingIsLeftOfAnInfraDeletedWhileTheManagerWasDown(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	ready(t, ctx)
	if found := inventory(t, ctx, "c1"); len(found) < 10 {
		t.Fatalf("the inventory finds too little to tell anything: %v", found)
	}
	everything := everyObject(t, ctx)

	must(t, manager(ctx, 0))
	kubectl(t, ctx, "-n", "clusters", "delete", "infra", "c1", "--wait=false")
	must(t, manager(ctx, 1))
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "infra/c1", "--timeout=90s")
	must(t, scene.Until(ctx, "nothing left", func(context.Context) error {
		if left := inventory(t, ctx, "c1"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	}))
	for _, o := range everyObject(t, ctx) {
		if strings.Contains(o, "/c1-dhcp") || strings.Contains(o, "/c1-dns") || strings.Contains(o, "/c1-proxy") {
			t.Errorf("left behind, without our label: %s (of %d objects before)", o, len(everything))
		}
	}

	must(t, lab.Apply(ctx, infraC1))
	ready(t, ctx)
}

// everyObject lists all objects of all types, as kind/namespace/name.
func everyObject(t *testing.T, ctx context.Context) []string {
	t.Helper()
	types := strings.Fields(kubectl(t, ctx, "api-resources", "--verbs=list", "-o", "name"))
	types = slices.DeleteFunc(types, func(s string) bool { return strings.HasPrefix(s, "events") })
	return strings.Fields(kubectl(t, ctx, "get", strings.Join(types, ","), "-A", "--ignore-not-found",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`))
}

func TestAForeignObjectOfOurNameIsReportedAndLeftAlone(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "152")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan152", "br152"))
	const foreign = `apiVersion: v1
kind: Service
metadata: {name: taken-proxy-svc, namespace: clusters}
spec: {ports: [{port: 1234}], selector: {app: somebody-else}}
`
	apply(t, ctx, foreign)
	before := kubectl(t, ctx, "-n", "clusters", "get", "service", "taken-proxy-svc", "-o", "json")
	apply(t, ctx, infraOn("taken", "192.168.152.0/24", "vlan152"))
	message := awaitCondition(t, ctx, "clusters", "proxyserver/taken-proxy", "Ready", "False", "")
	must(t, scene.Until(ctx, "the foreign Service is named", func(ctx context.Context) error {
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", "proxyserver/taken-proxy", "infra/taken", "-o", "jsonpath={.items[*].status.conditions[*].message}")
		if err == nil && !strings.Contains(out, "taken-proxy-svc") {
			err = fmt.Errorf("conditions say %q, first %q", out, message)
		}
		return err
	}))
	if after := kubectl(t, ctx, "-n", "clusters", "get", "service", "taken-proxy-svc", "-o", "json"); after != before {
		t.Errorf("the foreign Service was changed:\n%s\nwas\n%s", after, before)
	}
}

// After everything was deleted, a backup without status and owner references restores the same addresses, MACs and leases.
func TestARestoredBackupKeepsAddressesAndLeases(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	ready(t, ctx)
	joins(t, ctx, worker(6))
	const kinds = "infra,dhcpserver,dnsserver,proxyserver,dhcplease"
	backup := withoutIdentity(t, kubectl(t, ctx, "-n", "clusters", "get", kinds, "-o", "json"))
	facts := func() string {
		return kubectl(t, ctx, "-n", "clusters", "get", kinds+",net-attach-def", "-o",
			`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.spec.networkConfig.serverIP} {.spec.networkConfig.macAddress} {.spec.ip} {.spec.mac} {.spec.config}{"\n"}{end}`)
	}
	before := facts()

	kubectl(t, ctx, "-n", "clusters", "delete", "infra", "c1", "--timeout=90s")
	must(t, scene.Until(ctx, "nothing left", func(context.Context) error {
		if left := inventory(t, ctx, "c1"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	}))
	must(t, manager(ctx, 0))
	_, err := lab.Pipe(ctx, backup, "kubectl", "create", "-f", "-")
	must(t, err)
	must(t, manager(ctx, 1))
	ready(t, ctx)
	must(t, scene.Until(ctx, "the same addresses, MACs and leases", func(context.Context) error {
		if after := facts(); after != before {
			return fmt.Errorf("now\n%s\nwas\n%s", after, before)
		}
		return nil
	}))
}

// withoutIdentity removes what a backup tool does not keep: UIDs, versions, status, owner references.
func withoutIdentity(t *testing.T, list string) string {
	t.Helper()
	var l map[string]any
	must(t, json.Unmarshal([]byte(list), &l))
	for _, item := range l["items"].([]any) {
		o := item.(map[string]any)
		delete(o, "status")
		meta := o["metadata"].(map[string]any)
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "finalizers"} {
			delete(meta, field)
		}
	}
	out, err := json.Marshal(l)
	must(t, err)
	return string(out)
}

// A placement that fits no node is reported while the old pod still serves, and when the user mends it, nobody needs to touch a pod.
func TestAPlacementThatFitsNowhereIsMended(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ready(t, ctx)
	awaitCondition(t, ctx, "clusters", "infra/c1", "DHCPReady", "True", "InstancesShareNode") // one that does not serve yet is replaced at once
	place := func(nodes string) {
		kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"infraComponents":{"dhcp":{"nodeSelector":`+nodes+`}}}}`)
	}
	place(`{"kubernetes.io/hostname":"nowhere"}`)
	if message := awaitCondition(t, ctx, "clusters", "infra/c1", "Progressing", "False", "NewPodUnschedulable"); !strings.Contains(message, "nodeSelector") {
		t.Errorf("the message does not say what to correct: %s", message)
	}
	ready(t, ctx)
	if phase := kubectl(t, ctx, "-n", "clusters", "get", "pods", "-l", "app=dhcp,app.kubernetes.io/instance=c1-dhcp", "-o", "jsonpath={.items[*].status.phase}"); phase != "Running Running" {
		t.Errorf("the pods that served are %q", phase)
	}
	place(`null`)
	awaitCondition(t, ctx, "clusters", "infra/c1", "Progressing", "False", "Settled")
	ready(t, ctx)
}
