// Package diagnosecli reads what `oooi diagnose` judges, with the caller's own permissions. It reads no content of a Secret but the
// hosted cluster's kubeconfig, and prints nothing of that.
package diagnosecli

import (
	"context"
	"fmt"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/step"
)

// patience for one read: the whole must be over in 10 s.
const patience = 4 * time.Second

// Infras of a namespace, and which of them a name may mean: the one of that name, or all, whose workers may have it.
func Infras(ctx context.Context, api client.Reader, of types.NamespacedName) (all, meant []v1alpha1.Infra, err error) {
	var list v1alpha1.InfraList
	if err := api.List(ctx, &list, client.InNamespace(of.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing Infras in %s: %w", of.Namespace, err)
	}
	for _, i := range list.Items {
		if i.Name == of.Name {
			return list.Items, []v1alpha1.Infra{i}, nil
		}
	}
	return list.Items, list.Items, nil
}

// reader reads for one Infra.
type reader struct {
	ctx   context.Context
	api   client.Reader
	infra *v1alpha1.Infra
	// cluster is the HostedCluster, and controlPlane the namespace of its pods.
	cluster      types.NamespacedName
	controlPlane string
	// kubelets says whether they are asked for their health. Who reads again and again asks none, and reads so many leases only.
	kubelets bool
	share    Share
}

// Share reads a part that is as large as there are workers, or returns it as somebody read it a moment ago who had the right to. Nobody changes it.
type Share func(part string, read func(client.Reader) any) any

func shared[T any](r reader, part string, read func(reader) T) T {
	if r.share == nil {
		return read(r)
	}
	return r.share(part, func(api client.Reader) any {
		r.api = api
		return read(r)
	}).(T)
}

// See reads an Infra's surroundings. What cannot be read is said in its place.
func See(ctx context.Context, api client.Reader, infra *v1alpha1.Infra, now time.Time) diagnose.Facts {
	return reader{ctx: ctx, api: api, infra: infra, kubelets: true}.see(now)
}

// Glance is See for who reads again and again: no kubelet is asked, and more leases than a page can show are not read. Share may be nil.
func Glance(ctx context.Context, api client.Reader, infra *v1alpha1.Infra, now time.Time, share Share) diagnose.Facts {
	return reader{ctx: ctx, api: api, infra: infra, share: share}.see(now)
}

func (r reader) see(now time.Time) diagnose.Facts {
	infra := r.infra
	if r.cluster = input.Refs(infra).HostedCluster; r.cluster.Name != "" {
		r.controlPlane = endpoint.ControlPlaneNamespaceOf(r.cluster)
	}
	f := diagnose.Facts{Now: now, Infra: infra}
	together(
		func() {
			f.HostedCluster = object[hyperv1.HostedCluster](r, r.cluster, "hostedclusters.hypershift.openshift.io")
		},
		func() { f.DHCP = r.dhcp(); f.Warnings = r.warnings(f.DHCP.Is) },
		func() {
			f.DNS = object[v1alpha1.DNSServer](r, r.child(names.DNSServer), "dnsservers.hostedcluster.densityops.com")
		},
		func() {
			f.Proxy = object[v1alpha1.ProxyServer](r, r.child(names.ProxyServer), "proxyservers.hostedcluster.densityops.com")
		},
		func() { f.Leases = shared(r, "leases", reader.leases) },
		func() { f.NodePools = r.nodePools() },
		func() {
			list, why := read[nad.List](r, "", "network-attachment-definitions.k8s.cni.cncf.io")
			f.Networks = step.Read[[]nad.NetworkAttachmentDefinition]{Is: list.Items, Unread: why}
		},
		func() { f.Ignition = r.ignition() },
		func() { f.Policies = r.policies() },
		func() { f.Tokens = r.tokens() },
		func() { f.Refusals = r.refusals() },
		func() { f.Machines = shared(r, "machines", reader.machines) },
	)
	f.Hosted = r.hosted(f.HostedCluster, f.Machines.Is)
	return f
}

func (r reader) child(name func(string) string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.infra.Namespace, Name: name(r.infra.Name)}
}

func (r reader) dhcp() step.Read[*v1alpha1.DHCPServer] {
	return object[v1alpha1.DHCPServer](r, r.child(names.DHCPServer), "dhcpservers.hostedcluster.densityops.com")
}

func (r reader) warnings(of *v1alpha1.DHCPServer) step.Read[[]corev1.Event] {
	if of == nil {
		return step.Read[[]corev1.Event]{}
	}
	list, why := read[corev1.EventList](r, r.infra.Namespace, "events", client.MatchingFields{"involvedObject.uid": string(of.UID), "type": corev1.EventTypeWarning})
	return step.Read[[]corev1.Event]{Is: list.Items, Unread: why}
}

func (r reader) nodePools() (pools step.Read[[]hyperv1.NodePool]) {
	if r.cluster.Name == "" {
		return pools
	}
	list, why := read[hyperv1.NodePoolList](r, r.cluster.Namespace, "nodepools.hypershift.openshift.io")
	pools.Unread = why
	for _, p := range list.Items {
		if p.Spec.ClusterName == r.cluster.Name {
			pools.Is = append(pools.Is, p)
		}
	}
	return pools
}

// ignition reads what is behind the ignition server's front (hypershift ignition-server-proxy, an HAProxy that the proxy's health checks reach).
func (r reader) ignition() (ready step.Read[[]bool]) {
	if r.controlPlane == "" {
		return ready
	}
	list, why := read[discoveryv1.EndpointSliceList](r, r.controlPlane, "endpointslices.discovery.k8s.io", client.MatchingLabels{discoveryv1.LabelServiceName: "ignition-server"})
	ready.Unread = why
	for _, s := range list.Items {
		if len(s.Endpoints) == 0 {
			ready.Is = append(ready.Is, false)
		}
		for _, e := range s.Endpoints {
			ready.Is = append(ready.Is, ptr.Deref(e.Conditions.Ready, true))
		}
	}
	return ready
}

func (r reader) policies() (all step.Read[[]string]) {
	if r.controlPlane == "" {
		return all
	}
	list, why := read[networkingv1.NetworkPolicyList](r, r.controlPlane, "networkpolicies.networking.k8s.io")
	all.Unread = why
	for _, p := range list.Items {
		all.Is = append(all.Is, p.Name)
	}
	return all
}

// mostRefusals is how many events of the ignition server are read, at most: what a request names, a guest can invent.
const mostRefusals = 500

func (r reader) refusals() step.Read[[]corev1.Event] {
	if r.controlPlane == "" {
		return step.Read[[]corev1.Event]{}
	}
	list, why := read[corev1.EventList](r, r.controlPlane, "events", client.MatchingFields{"reason": diagnose.RefusalReason, "type": corev1.EventTypeWarning}, client.Limit(mostRefusals))
	if list.Continue != "" {
		why = fmt.Sprintf("there are more than %d of them", mostRefusals)
	}
	return step.Read[[]corev1.Event]{Is: list.Items, Unread: why}
}

// tokens asks for metadata only, so that no token leaves the API server.
func (r reader) tokens() (all step.Read[[]metav1.ObjectMeta]) {
	if r.controlPlane == "" {
		return all
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	all.Unread = r.list(list, r.controlPlane, "secrets")
	for _, s := range list.Items {
		all.Is = append(all.Is, s.ObjectMeta)
	}
	return all
}

// object reads one; nil if there is none.
func object[T any, P interface {
	*T
	client.Object
}](r reader, at types.NamespacedName, resource string) (is step.Read[*T]) {
	if at.Name == "" {
		return is
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	o := P(new(T))
	err := r.api.Get(ctx, at, o)
	if err == nil {
		is.Is = o
	} else if !apierrors.IsNotFound(err) {
		is.Unread = why(err, "get "+resource, at.Namespace)
	}
	return is
}

func read[T any, P interface {
	*T
	client.ObjectList
}](r reader, namespace, resource string, more ...client.ListOption) (list T, unread string) {
	unread = r.list(P(&list), namespace, resource, more...)
	return list, unread
}

func (r reader) list(into client.ObjectList, namespace, resource string, more ...client.ListOption) (unread string) {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	return why(r.api.List(ctx, into, append(more, client.InNamespace(namespace))...), "list "+resource, namespace)
}

// why says which right is missing, or what else went wrong; empty if nothing did.
func why(err error, right, namespace string) string {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces"
	}
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return step.MayNot + right + " " + where
	case meta.IsNoMatchError(err):
		return "the cluster does not serve them"
	}
	return err.Error()
}
