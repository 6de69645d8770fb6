package endpoint

import (
	"fmt"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
)

// What HyperShift writes about a NodePool's ignition (hypershift: hypershift-operator/controllers/nodepool/token.go).
const (
	// TokenNodePool is the annotation of a token's Secret that names the NodePool.
	TokenNodePool = "hypershift.openshift.io/nodePool"
	// TokenKey is the Secret's key with the token.
	TokenKey = "token"
	// TokenRelease is the Secret's key with the release image of the ignition that the token is for.
	TokenRelease = "release"
)

// openshiftRouter is the Service of OpenShift's default ingress controller inside the cluster.
const openshiftRouter = "router-internal-default.openshift-ingress.svc"

// IgnitionToken names the Secret with the token for a NodePool's ignition of one hash (hypershift: nodepool/token.go, TokenSecret).
func IgnitionToken(namespace, nodePool, hash string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("token-%s-%s", nodePool, hash)}
}

// IgnitionCA names the Secret with the CA of a control plane's ignition server.
func IgnitionCA(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: ignitionCA}
}

// IgnitionServers are what serves a control plane's ignition inside this cluster, in the order in which to try them. No author of a
// HostedCluster can choose them. Where it is published by a Route, HyperShift's NetworkPolicies let only ingress controllers in, beside the
// control plane itself (hypershift: hostedcluster/network_policies.go, reconcileOpenshiftIngressNetworkPolicy).
func IgnitionServers(hc *hyperv1.HostedCluster) []string {
	all := []string{fmt.Sprintf("%s.%s.svc:%d", ignitionProxy, ControlPlaneNamespace(hc), httpsPort)}
	if (ControlPlane{HostedCluster: hc}).published(hyperv1.Ignition).Type == hyperv1.Route {
		all = append(all, fmt.Sprintf("%s:%d", openshiftRouter, httpsPort))
	}
	return all
}
