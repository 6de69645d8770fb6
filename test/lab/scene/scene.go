// Package scene is the lab as the demo and the scenarios use it: the node started by `lab up`, the stand-in for HyperShift, the operator
// deployed from its own manifests, VLANs, Infras and worker machines.
package scene

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Scene is a running lab, driven by the commands that a person would type.
type Scene struct {
	// State is the running lab's directory.
	State string
	// Say receives progress lines.
	Say func(format string, args ...any)
}

// Open finds the lab that `lab env` put into the environment.
func Open(say func(string, ...any)) (*Scene, error) {
	state := os.Getenv("LAB_STATE")
	if state == "" || os.Getenv("KUBECONFIG") == "" {
		return nil, errors.New(`the lab is not in the environment: run test/lab/lab up, then eval "$(test/lab/lab env)"`)
	}
	return &Scene{State: state, Say: say}, nil
}

// Root is the repository's top directory.
func Root() string { return os.Getenv("LAB_REPO") }

// Run runs a command and returns what it wrote to stdout; the error carries its stderr.
func (s *Scene) Run(ctx context.Context, name string, args ...string) (string, error) {
	return s.Pipe(ctx, "", name, args...)
}

// Pipe is Run with stdin.
func (s *Scene) Pipe(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // running commands is what a scene does
	cmd.Dir, cmd.Stdin = Root(), strings.NewReader(stdin)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Lab runs a subcommand of test/lab/lab.
func (s *Scene) Lab(ctx context.Context, args ...string) (string, error) {
	return s.Run(ctx, filepath.Join(Root(), "test/lab/lab"), args...)
}

// InNode runs a subcommand of test/lab/lab for one of the nodes.
func (s *Scene) InNode(ctx context.Context, node string, args ...string) (string, error) {
	return s.Run(ctx, "env", append([]string{"LAB_NODE=" + node, filepath.Join(Root(), "test/lab/lab")}, args...)...)
}

// Kubectl runs kubectl on the management cluster.
func (s *Scene) Kubectl(ctx context.Context, args ...string) (string, error) {
	return s.Run(ctx, "kubectl", args...)
}

// Apply applies YAML to the management cluster.
func (s *Scene) Apply(ctx context.Context, yaml string) error {
	_, err := s.Pipe(ctx, yaml, "kubectl", "apply", "-f", "-")
	return err
}

// Standin runs a subcommand of the stand-in for HyperShift.
func (s *Scene) Standin(ctx context.Context, args ...string) (string, error) {
	out, err := s.Run(ctx, "standin", args...)
	return strings.TrimSpace(out), err
}

// DeployOperator deploys the operator with the manifests that users use.
func (s *Scene) DeployOperator(ctx context.Context) error {
	return s.DeployFrom(ctx, Root(), "oooi:dev")
}

// DeployFrom deploys an image by a tree's own manifests, with one manager: scenarios stop it, and read what it alone does.
func (s *Scene) DeployFrom(ctx context.Context, tree, image string) error {
	_, err := s.Run(ctx, "make", "deploy", "-C", tree, "IMG=e2e.local/"+image, "ENVOY_IMG=e2e.local/envoy:lab")
	if err == nil {
		_, err = s.Kubectl(ctx, "-n", "oooi-system", "scale", "deployment/oooi-controller-manager", "--replicas=1")
	}
	return err
}

// BridgeNAD is a network for workers on the VLAN's bridge: layer 2 only, without addresses, as KubeVirt needs it.
func BridgeNAD(name, bridge string) string {
	return fmt.Sprintf(`apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: %s, namespace: default}
spec: {config: '{"cniVersion":"0.3.1","name":"%s","type":"bridge","bridge":"%s"}'}
`, name, name, bridge)
}

// Until polls for what has no event until the context ends; the last error says what was missing. It waits 200 ms between two tries, or as
// long as a try took: beside a load the tries would be the load.
func Until(ctx context.Context, what string, ask func(context.Context) error) error {
	var last error
	for {
		began := time.Now()
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // an answer that was cut off says nothing
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, last)
		case <-time.After(max(200*time.Millisecond, time.Since(began))):
		}
	}
}
