package checkcli

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/step"
)

// undeclared are kinds without a Go type here: what DHCP reads of KubeVirt, and what the chart makes for Prometheus.
var undeclared = []schema.GroupVersionKind{
	{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"},
	{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
}

// apis asks which of the kinds that a cluster may lack are served. It fails for who is not logged in: every user may ask this.
func (r *Reader) apis() (step.Read[[]check.API], error) {
	groups, resources, err := r.discovery.ServerGroupsAndResources()
	if discovery.IsGroupDiscoveryFailedError(err) { // an aggregated API that is down is none of ours, or its kinds are missing
		err = nil
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return step.Read[[]check.API]{}, fmt.Errorf("asking which kinds are served: %w", err)
	}
	if err != nil {
		return step.Read[[]check.API]{Unread: "asking which kinds are served: " + err.Error()}, nil
	}
	kinds := slices.Clone(undeclared)
	for _, kind := range observe.NewKinds(true, true).All() {
		if gvk, err := apiutil.GVKForObject(kind, r.api.Scheme()); err == nil {
			kinds = append(kinds, gvk)
		}
	}
	var all []check.API
	for _, kind := range kinds {
		all = append(all, check.API{GroupVersionKind: kind, Served: serves(resources, kind), Others: others(groups, kind)})
	}
	return step.Read[[]check.API]{Is: all}, nil
}

func serves(all []*metav1.APIResourceList, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(all, func(l *metav1.APIResourceList) bool {
		return l.GroupVersion == kind.GroupVersion().String() && slices.ContainsFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind })
	})
}

// others are the versions of a kind's group that are served.
func others(all []*metav1.APIGroup, kind schema.GroupVersionKind) (versions []string) {
	for _, g := range all {
		for _, v := range g.Versions {
			if g.Name == kind.Group && v.Version != kind.Version {
				versions = append(versions, v.GroupVersion)
			}
		}
	}
	return versions
}

// versions of those that say theirs. Who may not read one is told that the component is there.
func (r *Reader) versions(ctx context.Context) map[string]string {
	all := map[string]string{}
	openShift := &configv1.ClusterVersion{}
	if r.api.Get(ctx, types.NamespacedName{Name: "version"}, openShift) == nil {
		all["openshift"] = openShift.Status.Desired.Version
	}
	if version, err := bridgecli.DPFVersion(ctx, r.api); err == nil {
		all["dpf"] = version
	}
	virts := &unstructured.UnstructuredList{}
	virts.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "KubeVirtList"})
	if r.api.List(ctx, virts) == nil {
		for _, v := range virts.Items {
			all["kubevirt"], _, _ = unstructured.NestedString(v.Object, "status", "observedKubeVirtVersion")
		}
	}
	return all
}

// crds reads those with the names of ours.
func (r *Reader) crds(ctx context.Context) step.Read[map[string]apiextensionsv1.CustomResourceDefinition] {
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for name := range check.Own() {
		crd := apiextensionsv1.CustomResourceDefinition{}
		err := r.api.Get(ctx, types.NamespacedName{Name: name}, &crd)
		if w := why(check.Right{Verb: "get", Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}, err); w != "" {
			return step.Read[map[string]apiextensionsv1.CustomResourceDefinition]{Unread: w}
		}
		if err == nil {
			all[name] = crd
		}
	}
	return step.Read[map[string]apiextensionsv1.CustomResourceDefinition]{Is: all}
}
