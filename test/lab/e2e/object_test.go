//go:build e2e

package e2e

import (
	"context"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// reader reads objects of the management cluster in this process: a kubectl costs 0.2 s of a processor, and scenarios ask five times a second.
type reader struct {
	dynamic.Interface
	meta.ResettableRESTMapper
}

var connected = sync.OnceValues(func() (reader, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return reader{}, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return reader{}, err
	}
	objects, err := dynamic.NewForConfig(config)
	return reader{objects, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, err
})

// read reads an object that is written as for kubectl, such as infra/c1.
func read(ctx context.Context, namespace, object string) (*unstructured.Unstructured, error) {
	r, err := connected()
	if err != nil {
		return nil, err
	}
	kind, name, _ := strings.Cut(object, "/")
	resource, err := r.ResourceFor(schema.GroupVersionResource{Resource: kind})
	if err != nil {
		r.Reset() // its CRD may have come since
		return nil, err
	}
	return r.Resource(resource).Namespace(namespace).Get(ctx, name, v1.GetOptions{})
}
