package standin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AddWorker makes the management cluster know a virtual machine, as if KubeVirt had started it, and writes the user data
// that it boots with into a directory. It returns that file.
func (l *Lab) AddWorker(ctx context.Context, c Cluster, w Worker, dir string) (string, error) {
	for _, o := range w.objects(c) {
		if err := l.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership); err != nil {
			return "", fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		switch o.GroupVersionKind() {
		case machineKind:
			if err := writeStatus(ctx, l.client, machineKind, o, w.machineStatus("")); err != nil {
				return "", err
			}
		case instanceKind:
			if err := writeStatus(ctx, l.client, instanceKind, o, w.instanceStatus("")); err != nil {
				return "", err
			}
		}
	}
	return l.UserData(ctx, c, dir)
}

// UserData writes what a machine of the NodePool boots with, whoever provisions it, and returns the file.
func (l *Lab) UserData(ctx context.Context, c Cluster, dir string) (string, error) {
	secret := &corev1.Secret{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: c.userDataSecret()}, secret); err != nil {
		return "", fmt.Errorf("reading the user data of NodePool %s: %w", c.nodePool(), err)
	}
	return writeFile(dir, c.Name+".ign", secret.Data["value"])
}

// RemoveWorker forgets a virtual machine.
func (l *Lab) RemoveWorker(ctx context.Context, c Cluster, w Worker) error {
	for _, o := range w.objects(c) {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("removing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Kubeconfig writes an administrator's way into the hosted cluster that takes no part in what is tested: by the
// Service's cluster address, whatever is published.
func (l *Lab) Kubeconfig(ctx context.Context, c Cluster, dir string) (string, error) {
	existing, err := l.existing(ctx, c)
	if err != nil {
		return "", err
	}
	service := &corev1.Service{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: kubeAPIServer}, service); err != nil {
		return "", fmt.Errorf("reading the Service of the API: %w", err)
	}
	k := kubeconfig{user: "system-admin-client", server: "https://" + hostPort(service.Spec.ClusterIP, apiPort), serverName: c.serviceHost(kubeAPIServer)}
	content, err := k.write(existing)
	if err != nil {
		return "", err
	}
	return writeFile(dir, c.Name+".kubeconfig", content["kubeconfig"])
}

func writeFile(dir, name string, content []byte) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, content, 0o600)
}
