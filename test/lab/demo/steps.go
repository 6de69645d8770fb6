package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// step is one thing that must happen between power-on and a usable worker.
type step struct {
	name  string
	limit time.Duration
	do    func(context.Context) (string, error)
}

// outcome is the result of a step.
type outcome struct {
	step   step
	after  time.Duration
	detail string
	err    error
}

// boot runs the steps in the order of a worker's boot, and stops at the first that fails.
func boot(ctx context.Context, steps []step, poweredOn time.Time, tell func(outcome)) []outcome {
	var all []outcome
	for _, s := range steps {
		limited, cancel := context.WithTimeout(ctx, s.limit)
		detail, err := s.do(limited)
		cancel()
		o := outcome{s, time.Since(poweredOn), detail, err}
		tell(o)
		all = append(all, o)
		if err != nil {
			break
		}
	}
	return all
}

// bootSteps are what a worker dials, in its order (HyperShift's rows 1, 2 and 4), each observed where it happens: on the machine's console,
// in the hosted cluster, and through the hosted API server's connection to the kubelet.
func bootSteps(console *scene.Console, m scene.Machine, hosted func(context.Context, ...string) (string, error)) []step {
	stage := func(name string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			at, err := console.Await(ctx, name)
			return at.Detail, err
		}
	}
	return []step{
		{"lease", 60 * time.Second, stage("lease")},
		{"names", 20 * time.Second, stage("names")},
		{"ignition", 30 * time.Second, stage("ignition")},
		{"TLS to the API", 60 * time.Second, stage("api")},
		{"CSR", 60 * time.Second, stage("certificate")},
		{"Node Ready", 90 * time.Second, func(ctx context.Context) (string, error) { return nodeReady(ctx, m.Name, hosted) }},
		{"pod running", 120 * time.Second, func(ctx context.Context) (string, error) { return podRunning(ctx, m.Name, hosted) }},
		{"logs via konnectivity", 120 * time.Second, func(ctx context.Context) (string, error) { return logsOf(ctx, hosted) }},
	}
}

func nodeReady(ctx context.Context, node string, hosted func(context.Context, ...string) (string, error)) (string, error) {
	if _, err := hosted(ctx, "wait", "--for=create", "node/"+node, "--timeout=85s"); err != nil {
		return "", err
	}
	if _, err := hosted(ctx, "wait", "--for=condition=Ready", "node/"+node, "--timeout=85s"); err != nil {
		return "", err
	}
	out, err := hosted(ctx, "get", "node", node, "-o", "jsonpath={.status.addresses[?(@.type=='InternalIP')].address} kubelet {.status.nodeInfo.kubeletVersion}")
	return out, err
}

const demoPod = "hello"

func podRunning(ctx context.Context, node string, hosted func(context.Context, ...string) (string, error)) (string, error) {
	overrides := fmt.Sprintf(`{"spec":{"nodeName":%q,"terminationGracePeriodSeconds":0}}`, node)
	// A service account is made shortly after its namespace; no event says that it can be used.
	err := scene.Until(ctx, "creating a pod", func(ctx context.Context) error {
		_, err := hosted(ctx, "run", demoPod, "--image=e2e.local/testapp:1", "--image-pull-policy=Never", "--restart=Never", "--overrides", overrides)
		if err != nil && strings.Contains(err.Error(), "AlreadyExists") {
			return nil
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if _, err := hosted(ctx, "wait", "--for=condition=Ready", "pod/"+demoPod, "--timeout=115s"); err != nil {
		return "", err
	}
	return hosted(ctx, "get", "pod", demoPod, "-o", "jsonpath={.status.podIP} on {.spec.nodeName}")
}

func logsOf(ctx context.Context, hosted func(context.Context, ...string) (string, error)) (string, error) {
	var line string
	err := scene.Until(ctx, "kubectl logs "+demoPod, func(ctx context.Context) error {
		out, err := hosted(ctx, "logs", demoPod)
		if err == nil && !strings.Contains(out, "ready") {
			err = errors.New("the log does not hold what the pod wrote")
		}
		line, _, _ = strings.Cut(strings.TrimSpace(out), "\n")
		return err
	})
	return line, err
}
