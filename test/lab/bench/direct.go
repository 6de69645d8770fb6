package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// The direct attachment is a network of the management cluster's machines: the node routes for it, so kube-proxy leads the
// API's address on; dnsmasq gives leases and names, and haproxy stands for the ingress router that the Routes' names lead to.
const (
	directBridge = "brdirect"
	directNode   = "192.168.201.1" // the node's address on it
)

// withDirectNetwork does something while the direct attachment works; a server of it that ends early ends what is done.
func (b *bench) withDirectNetwork(ctx context.Context, machines []scene.Machine, do func(context.Context) error) error {
	routes, err := b.ingressRoutes(ctx)
	if err != nil {
		return err
	}
	config := filepath.Join(b.State, "config", "bench-haproxy.cfg")
	if err := os.WriteFile(config, []byte(haproxyConfig(routes)), 0o600); err != nil {
		return err
	}
	if err := b.makeDirectBridge(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	serve := func(command ...string) {
		all.Go(func() error {
			_, err := b.inNode(ctx, command...)
			if ctx.Err() != nil {
				return nil // ended by us
			}
			return fmt.Errorf("%s has ended: %w", command[0], err)
		})
	}
	serve(dnsmasq(routes, machines)...)
	serve("haproxy", "-db", "-f", config)
	all.Go(func() error { defer stop(); return do(ctx) })
	return all.Wait()
}

// inNode runs a command in the node's network.
func (b *bench) inNode(ctx context.Context, command ...string) (string, error) {
	return b.Run(ctx, "ip", append([]string{"netns", "exec", os.Getenv("LAB_NETNS")}, command...)...)
}

func (b *bench) makeDirectBridge(ctx context.Context) error {
	if _, err := b.Lab(ctx, "vlan", strings.TrimPrefix(directBridge, "br")); err != nil {
		return err
	}
	_, err := b.inNode(ctx, "ip", "addr", "replace", directNode+"/24", "dev", directBridge)
	return err
}

// ingressRoute is a name that the management cluster's ingress serves, and the Service behind it as address:port.
type ingressRoute struct{ host, service, backend string }

func (b *bench) ingressRoutes(ctx context.Context) ([]ingressRoute, error) {
	var routes routev1.RouteList
	if err := b.cluster.List(ctx, &routes, client.InNamespace("clusters-c1")); err != nil {
		return nil, err
	}
	var all []ingressRoute
	for _, r := range routes.Items {
		var s corev1.Service
		if err := b.cluster.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.To.Name}, &s); err != nil {
			return nil, err
		}
		all = append(all, ingressRoute{r.Spec.Host, s.Name, fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)})
	}
	return all, nil
}

func haproxyConfig(routes []ingressRoute) string {
	frontend, backends := "", ""
	for _, r := range routes {
		frontend += fmt.Sprintf("  use_backend %s if { req.ssl_sni -i %s }\n", r.service, r.host)
		backends += fmt.Sprintf("backend %s\n  server service %s\n", r.service, r.backend)
	}
	return `defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend ingress
  bind ` + directNode + `:443
  tcp-request inspect-delay 5s
  tcp-request content accept if { req.ssl_hello_type 1 }
` + frontend + backends
}

func dnsmasq(routes []ingressRoute, machines []scene.Machine) []string {
	command := []string{"dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root", "--leasefile-ro", "--no-ping",
		"--interface=" + directBridge, "--bind-interfaces", "--except-interface=lo", "--no-hosts", "--no-resolv",
		"--dhcp-authoritative", "--dhcp-range=192.168.201.0,static,255.255.255.0,1h"}
	for i, m := range machines {
		command = append(command, fmt.Sprintf("--dhcp-host=%s,192.168.201.%d,%s", m.MAC, 10+i, m.Name))
	}
	for _, r := range routes {
		command = append(command, "--host-record="+r.host+","+directNode)
	}
	return command
}
