// Package endpoint is the one truth about what workers dial: names, ports, TLS, and where each leads. DNS records, proxy
// routes and NetworkPolicy ports are views of its table; nothing else knows a port of a hosted control plane.
package endpoint

import (
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// ControlPlaneNamespace is where HyperShift runs the control plane of a HostedCluster (hypershift:
// hypershift-operator/controllers/manifests, HostedControlPlaneNamespace).
func ControlPlaneNamespace(hc *hyperv1.HostedCluster) string {
	return hc.Namespace + "-" + strings.ReplaceAll(hc.Name, ".", "-")
}
