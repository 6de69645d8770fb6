package observe

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/plan"
)

// Cluster fills in what no flag said of the management cluster and does not change under us: its domain as the manager's
// own resolver has it, and its networks as OpenShift's Network says. Without that, networks follows them.
func Cluster(ctx context.Context, reader client.Reader, s plan.Settings) (plan.Settings, error) {
	if s.ClusterDomain == "" {
		text, err := os.ReadFile("/etc/resolv.conf")
		if err != nil {
			return s, fmt.Errorf("finding the cluster's domain (or set --cluster-domain): %w", err)
		}
		s.ClusterDomain = clusterDomain(string(text))
	}
	pods, services, err := openShiftNetworks(ctx, reader)
	if err != nil {
		return s, err
	}
	if len(s.PodCIDRs) == 0 {
		s.PodCIDRs = pods
	}
	if len(s.ServiceCIDRs) == 0 {
		s.ServiceCIDRs = services
	}
	return s, nil
}

// networks fills in what neither a flag nor OpenShift says: the cluster's networks as its Nodes and ServiceCIDRs have them now.
func (o *Observer) networks(ctx context.Context) (s plan.Settings, err error) {
	s = o.Settings
	if len(s.PodCIDRs) == 0 {
		if s.PodCIDRs, err = o.nodeNetworks(ctx); err != nil {
			return s, err
		}
	}
	if len(s.ServiceCIDRs) == 0 {
		s.ServiceCIDRs, err = o.serviceNetworks(ctx)
	}
	return s, err
}

// clusterDomain is what follows svc in a pod's search list; empty outside a cluster.
func clusterDomain(resolvConf string) string {
	for line := range strings.Lines(resolvConf) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "search" {
			continue
		}
		for _, domain := range words[1:] {
			if after, found := strings.CutPrefix(domain, "svc."); found {
				return strings.TrimSuffix(after, ".")
			}
		}
	}
	return ""
}

func openShiftNetworks(ctx context.Context, reader client.Reader) (pods, services []netip.Prefix, err error) {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Network"})
	err = reader.Get(ctx, client.ObjectKey{Name: "cluster"}, network)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the cluster's Network: %w", err)
	}
	blocks, _, _ := unstructured.NestedSlice(network.Object, "status", "clusterNetwork")
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		cidr, _ := block["cidr"].(string)
		pods = append(pods, prefixes(cidr)...)
	}
	texts, _, _ := unstructured.NestedStringSlice(network.Object, "status", "serviceNetwork")
	return pods, prefixes(texts...), nil
}

func (o *Observer) nodeNetworks(ctx context.Context) ([]netip.Prefix, error) {
	nodes := &corev1.NodeList{}
	if err := o.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the pods' networks from Nodes (or set --pod-cidrs): %w", err)
	}
	var all []string
	for _, n := range nodes.Items {
		all = append(all, n.Spec.PodCIDRs...)
	}
	return prefixes(all...), nil
}

// serviceNetworks are none before Kubernetes 1.33, which has no ServiceCIDRs.
func (o *Observer) serviceNetworks(ctx context.Context) ([]netip.Prefix, error) {
	known, err := list[networkingv1.ServiceCIDRList](ctx, o, "")
	if err != nil || known == nil {
		return nil, err
	}
	var all []string
	for _, c := range known.Items {
		all = append(all, c.Spec.CIDRs...)
	}
	return prefixes(all...), nil
}

// prefixes are those texts that are networks, in an order of their own: a cache lists objects in any.
func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Masked())
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
