package observe

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/plan/input"
)

// Cluster fills in the cluster domain from the manager's own resolver, unless a flag gives it. It does not change at run time; the cluster's
// networks may, and are watched.
func Cluster(s input.Settings) (input.Settings, error) {
	if s.ClusterDomain == "" {
		text, err := os.ReadFile("/etc/resolv.conf")
		if err != nil {
			return s, fmt.Errorf("finding the cluster's domain (or set --cluster-domain): %w", err)
		}
		s.ClusterDomain = clusterDomain(string(text))
	}
	return s, nil
}

// networks fills in the cluster's networks unless flags give them: as OpenShift's Network has them now, else as Nodes and ServiceCIDRs have.
func (o *Observer) networks(ctx context.Context) (input.Settings, error) {
	s := o.Settings
	network, err := get[configv1.Network](ctx, o, openShiftNetwork)
	if err != nil {
		return s, err
	}
	if network != nil {
		s = s.In(network)
	}
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

// clusterDomain is the domain after svc in a pod's search list; empty outside a cluster.
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

// openShiftNetwork is the only Network of an OpenShift cluster.
var openShiftNetwork = types.NamespacedName{Name: "cluster"}

func (o *Observer) nodeNetworks(ctx context.Context) ([]netip.Prefix, error) {
	nodes := &corev1.NodeList{}
	if err := o.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the pods' networks from Nodes (or set --pod-cidrs): %w", err)
	}
	var all []string
	for _, n := range nodes.Items {
		all = append(all, n.Spec.PodCIDRs...)
	}
	return input.Prefixes(all...), nil
}

// serviceNetworks are empty before Kubernetes 1.33: older versions have no ServiceCIDRs.
func (o *Observer) serviceNetworks(ctx context.Context) ([]netip.Prefix, error) {
	known, err := list[networkingv1.ServiceCIDRList](ctx, o, "")
	if err != nil || known == nil {
		return nil, err
	}
	var all []string
	for _, c := range known.Items {
		all = append(all, c.Spec.CIDRs...)
	}
	return input.Prefixes(all...), nil
}
