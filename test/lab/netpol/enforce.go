package netpol

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Enforce keeps the rules of this network namespace in step with the cluster until ctx ends.
func Enforce(ctx context.Context, client kubernetes.Interface) error {
	changed := make(chan struct{}, 1)
	observe, err := watch(ctx, client, changed)
	if err != nil {
		return err
	}
	applied := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		cluster, err := observe()
		if err != nil {
			return err
		}
		rules, err := Ruleset(cluster)
		if err == nil && rules != applied {
			err = load(ctx, rules)
		}
		if err != nil {
			slog.Error("rules not applied, the last ones stay", "err", err)
			time.AfterFunc(time.Second, func() { notify(changed) })
			continue
		}
		applied = rules
	}
}

// watch signals changed whenever an object changes, and once at the start; observe lists the known objects.
func watch(ctx context.Context, client kubernetes.Interface, changed chan struct{}) (observe func() (Cluster, error), err error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	policies := factory.Networking().V1().NetworkPolicies()
	pods := factory.Core().V1().Pods()
	namespaces := factory.Core().V1().Namespaces()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify(changed) },
		UpdateFunc: func(any, any) { notify(changed) },
		DeleteFunc: func(any) { notify(changed) },
	}
	for _, informer := range []cache.SharedIndexInformer{policies.Informer(), pods.Informer(), namespaces.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watching %v: ended before the first list", kind)
		}
	}
	notify(changed)
	return func() (c Cluster, err error) {
		if c.Policies, err = policies.Lister().List(labels.Everything()); err != nil {
			return c, err
		}
		if c.Pods, err = pods.Lister().List(labels.Everything()); err != nil {
			return c, err
		}
		c.Namespaces, err = namespaces.Lister().List(labels.Everything())
		return c, err
	}, nil
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // one is already pending
	}
}

func load(ctx context.Context, rules string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
