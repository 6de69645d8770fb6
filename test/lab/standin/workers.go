package standin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AddWorker registers a virtual machine with the management cluster, as if KubeVirt had started it, and writes the machine's user data into
// a directory. It returns that file.
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

// UserData writes the user data of the NodePool's machines, whoever provisions them, and returns the file.
func (l *Lab) UserData(ctx context.Context, c Cluster, dir string) (string, error) {
	secret := &corev1.Secret{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: c.userDataSecret()}, secret); err != nil {
		return "", fmt.Errorf("reading the user data of NodePool %s: %w", c.nodePool(), err)
	}
	return writeFile(dir, c.Name+".ign", secret.Data["value"])
}

// RemoveWorker deletes a virtual machine's objects.
func (l *Lab) RemoveWorker(ctx context.Context, c Cluster, w Worker) error {
	for _, o := range w.objects(c) {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("removing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Kubeconfig writes an administrator's kubeconfig for the hosted cluster that does not depend on what is tested: it uses the Service's
// cluster address, however the API is published.
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
