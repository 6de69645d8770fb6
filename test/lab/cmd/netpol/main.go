// netpol enforces the cluster's NetworkPolicies in the network namespace that it is started in.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cldmnky/oooi/test/lab/netpol"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of a user who may list pods, namespaces and NetworkPolicies")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		slog.Error("ended", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return netpol.Enforce(ctx, client)
}
