package bridge

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/endpoint"
)

// Download says which ignition a bridge's templates are made from, and where it is served.
type Download struct {
	// NodePool and Hash say whose ignition, and of which configuration.
	NodePool types.NamespacedName
	Hash     string
	// CA and Token are Secrets in the control-plane namespace.
	CA, Token types.NamespacedName
	// Host is the server's name in TLS.
	Host string
	// Servers are what to connect to, HOST:PORT, in the order in which to try them, whatever Host resolves to.
	Servers []string
}

// Payload is what is known of a Download.
type Payload struct {
	// Content is the ignition, and Release the release image that it is for. A later failure does not remove them.
	Content []byte
	Release string
	// Reason and Message say why there is no content, or why it cannot be downloaded again. With no content either, nothing is known yet.
	Reason, Message string
}

// Download is what to download for the bridge; nil while there is nothing.
func (in Input) Download() *Download {
	hc, pool := in.cluster(), in.pool()
	if hc == nil || hc.DeletionTimestamp != nil || pool == nil || in.anotherHasNamespace() {
		return nil
	}
	hash, namespace := pool.Annotations[endpoint.ConfigVersion], endpoint.ControlPlaneNamespace(hc)
	host := endpoint.ControlPlane{HostedCluster: hc}.IgnitionHost()
	if hash == "" || host == "" || hc.Status.IgnitionEndpoint == "" {
		return nil
	}
	return &Download{
		NodePool: types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}, Hash: hash, Host: host,
		CA: endpoint.IgnitionCA(namespace), Token: endpoint.IgnitionToken(namespace, pool.Name, hash), Servers: endpoint.IgnitionServers(hc),
	}
}
