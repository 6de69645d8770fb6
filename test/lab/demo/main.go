// Command demo shows the main job in the running lab: a virtual machine whose only card is on an isolated VLAN joins a hosted control
// plane, by an Infra of three lines. With --sabotage it breaks one service after the Infra is Ready, and then must say which step of the
// boot failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

const infra = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig:
    cidr: 192.168.100.0/24
    networkAttachmentDefinition: vlan100
    networkAttachmentNamespace: default
`

var worker = scene.Machine{Name: "worker-1", MAC: "52:54:00:00:01:01", Cluster: "c1", Bridge: "br100", NAD: "default/vlan100"}

func main() {
	sabotage := flag.String("sabotage", "", "what to break once the Infra is Ready: dhcp, dns, proxy or policy")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sabotage); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sabotage string) error {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("[%6.1f s] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	s, err := scene.Open(say)
	if err != nil {
		return err
	}
	if err := prepare(ctx, s, say); err != nil {
		return err
	}
	if sabotage != "" {
		say("sabotage: %s is broken now", sabotage)
		if err := breakOne(ctx, s, sabotage); err != nil {
			return err
		}
	}
	return join(ctx, s, say)
}

// prepare sets everything up for a worker to be powered on.
func prepare(ctx context.Context, s *scene.Scene, say func(string, ...any)) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"VLAN 100: a bridge that nothing routes", func() error { _, err := s.Lab(ctx, "vlan", "100"); return err }},
		{"hosted control plane c1 in namespace clusters-c1", func() error { _, err := s.Standin(ctx, "apply", "--cluster", "c1"); return err }},
		{"operator deployed by its own manifests", func() error { return s.DeployOperator(ctx) }},
		{"NetworkAttachmentDefinition default/vlan100, layer 2 only", func() error { return s.Apply(ctx, scene.BridgeNAD("vlan100", "br100")) }},
		{"Infra applied:\n" + infra, func() error { return s.Apply(ctx, infra) }},
		{"Infra Ready", func() error {
			_, err := s.Kubectl(ctx, "-n", "clusters", "wait", "--for=condition=Ready", "infra/c1", "--timeout=90s")
			return err
		}},
	} {
		if err := step.do(); err != nil {
			return err
		}
		say("%s", step.what)
	}
	return show(ctx, s)
}

func show(ctx context.Context, s *scene.Scene) error {
	out, err := s.Kubectl(ctx, "-n", "clusters", "get", "oooi")
	fmt.Printf("\n$ kubectl -n clusters get oooi\n%s\n", out)
	return err
}

// join powers the worker on and reports each step of its boot as it happens.
func join(ctx context.Context, s *scene.Scene, say func(string, ...any)) error {
	kubeconfig, err := s.Standin(ctx, "kubeconfig", "--cluster", worker.Cluster)
	if err != nil {
		return err
	}
	hosted := func(ctx context.Context, args ...string) (string, error) {
		return s.Lab(ctx, append([]string{"exec", "kubectl", "--kubeconfig", kubeconfig}, args...)...)
	}
	console, err := s.PowerOn(ctx, worker)
	if err != nil {
		return err
	}
	say("%s powered on; its only card is on VLAN 100", worker.Name)
	done := boot(ctx, bootSteps(console, worker, hosted), console.PoweredOn, func(o outcome) {
		if o.err == nil {
			say("+%5.1f s  %-22s %s", o.after.Seconds(), o.step.name, o.detail)
		}
	})
	if err := show(ctx, s); err != nil {
		return err
	}
	return verdict(done)
}

func verdict(done []outcome) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "STEP\tAFTER POWER-ON\tRESULT\tDETAIL")
	for _, o := range done {
		result, detail := "ok", o.detail
		if o.err != nil {
			result, detail = "BROKEN", o.err.Error()
		}
		fmt.Fprintf(table, "%s\t%.1f s\t%s\t%.200s\n", o.step.name, o.after.Seconds(), result, strings.ReplaceAll(detail, "\n", " "))
	}
	table.Flush()
	if last := done[len(done)-1]; last.err != nil {
		return fmt.Errorf("the worker did not join; the step that broke is %q", last.step.name)
	}
	fmt.Printf("\nverdict: %s joined its hosted control plane %.1f s after power-on\n", worker.Name, readyAfter(done).Seconds())
	return nil
}

func readyAfter(done []outcome) time.Duration {
	for _, o := range done {
		if o.step.name == "Node Ready" {
			return o.after
		}
	}
	return 0
}

// breakOne removes one service and keeps the operator from restoring it.
func breakOne(ctx context.Context, s *scene.Scene, what string) error {
	paused := "hostedcluster.densityops.com/paused=true"
	pause := func(objects ...string) error {
		for _, o := range objects {
			if _, err := s.Kubectl(ctx, "-n", "clusters", "annotate", o, paused); err != nil {
				return err
			}
		}
		return nil
	}
	remove := func(child string, workloads ...string) error {
		if err := pause("infra/c1", child); err != nil {
			return err
		}
		_, err := s.Kubectl(ctx, append([]string{"-n", "clusters", "delete", "--cascade=foreground", "--wait"}, workloads...)...)
		return err
	}
	switch what {
	case "dhcp":
		return remove("dhcpserver/c1-dhcp", "statefulset/c1-dhcp-deployment", "statefulset/c1-dhcp-deployment-1")
	case "dns":
		return remove("dnsserver/c1-dns", "statefulset/c1-dns-deployment", "statefulset/c1-dns-deployment-1")
	case "proxy":
		return remove("proxyserver/c1-proxy", "deployment/c1-proxy-deployment", "deployment/c1-proxy-deployment-1")
	case "policy":
		if err := pause("infra/c1"); err != nil {
			return err
		}
		_, err := s.Kubectl(ctx, "-n", "clusters-c1", "delete", "networkpolicy", "-l", "hostedcluster.densityops.com/infra=c1")
		return err
	}
	return errors.New("--sabotage takes dhcp, dns, proxy or policy")
}
