package standin

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme, routev1.Install, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}()

const fieldOwner = client.FieldOwner("hypershift-standin")

// Connect connects to the cluster of a kubeconfig; without one, to that of $KUBECONFIG or the one that this process runs in.
func Connect(kubeconfig string) (client.WithWatch, *rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = 200, 400
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return c, cfg, nil
}

// toApply drops what a typed object sets by default: its status and its empty creation time.
func toApply(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting %T %s: %w", o, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return u, nil
}

func apply(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, o := range objects {
		u, err := toApply(o)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
		}
	}
	return nil
}

// applyStatus writes only an object's status, in place of its controller.
func applyStatus(ctx context.Context, c client.Client, o client.Object, status any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("converting the status of %s: %w", o.GetName(), err)
	}
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return err
	}
	return writeStatus(ctx, c, gvk, o, content)
}

// await follows objects of one kind until each has satisfied done, and tells each one's name then. A watch without a version starts with
// the existing objects, so it misses none.
func await(ctx context.Context, c client.WithWatch, list client.ObjectList, where []client.ListOption, want map[string]bool, done func(client.Object) bool, tell func(name string)) error {
	for len(want) > 0 {
		w, err := c.Watch(ctx, list, where...)
		if err != nil {
			return fmt.Errorf("waiting for %v: %w", names(want), err)
		}
		for event := range w.ResultChan() {
			if o, ok := event.Object.(client.Object); ok && want[o.GetName()] && done(o) {
				delete(want, o.GetName())
				tell(o.GetName())
			}
			if len(want) == 0 {
				break
			}
		}
		w.Stop()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for %v: %w", names(want), err)
		}
	}
	return nil
}

// writeStatus is applyStatus for a kind without a Go type, with the name and namespace of like.
func writeStatus(ctx context.Context, c client.Client, kind schema.GroupVersionKind, like client.Object, status object) error {
	u := &unstructured.Unstructured{Object: object{"status": status}}
	u.SetGroupVersionKind(kind)
	u.SetName(like.GetName())
	u.SetNamespace(like.GetNamespace())
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(u), err)
	}
	return nil
}
