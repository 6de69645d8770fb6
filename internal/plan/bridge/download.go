package bridge

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
)

// Download is what to download for the bridge; nil while there is nothing.
func (in Input) Download() *Download {
	hc, pool := in.cluster(), in.pool()
	if hc == nil || hc.DeletionTimestamp != nil || pool == nil || in.anotherHasNamespace() {
		return nil
	}
	hash, namespace := pool.Annotations[names.AnnotationConfigVersion], endpoint.ControlPlaneNamespace(hc)
	host := endpoint.ControlPlane{HostedCluster: hc}.IgnitionHost()
	if hash == "" || host == "" || hc.Status.IgnitionEndpoint == "" {
		return nil
	}
	return &Download{
		NodePool: types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}, Hash: hash, Host: host,
		CA: endpoint.IgnitionCA(namespace), Token: endpoint.IgnitionToken(namespace, pool.Name, hash), Servers: endpoint.IgnitionServers(hc),
	}
}
