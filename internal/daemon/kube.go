package daemon

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

var scheme = Scheme()

// Scheme has our kinds and Kubernetes' own.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Kube connects to the cluster through the flags' socket, or else as the user of this process. It sends no request yet, so it succeeds
// while the API server is away. Each adjustment may change the connection's configuration.
func (f *Flags) Kube(adjustments ...func(*rest.Config)) (client.WithWatch, error) {
	config, err := f.cluster()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's priority and fairness limits us, not client-go's guess
	for _, adjust := range adjustments {
		adjust(config)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return c, nil
}

func (f *Flags) cluster() (*rest.Config, error) {
	if f.APISocket != "" {
		return throughSocket(f.APISocket), nil
	}
	return Cluster()
}

// Cluster is the one in KUBECONFIG, or else the one that the pod runs in. (controller-runtime's own loader would add flags to every
// command.)
func Cluster() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (set KUBECONFIG, run in a pod, or use --config-file): %w", err)
	}
	return config, nil
}
