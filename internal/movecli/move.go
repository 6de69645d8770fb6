// Package movecli carries an Infra to another management cluster, so that addresses, MACs and leases on its VLAN stay as its workers know them:
// its assigned addresses are an annotation, MACs are derived from its names and addresses, and leases are objects.
package movecli

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

// Move is an Infra as it is carried.
type Move struct {
	// Infra is paused, and has the addresses that were assigned to it.
	Infra *v1alpha1.Infra
	// Network that it names; nil if a controller renders it.
	Network *nad.NetworkAttachmentDefinition
	Leases  []v1alpha1.DHCPLease
	// Left is what somebody has to bring, a sentence each.
	Left []string
}

// Read reads an Infra and what it needs elsewhere. now is the time from which leases count.
func Read(ctx context.Context, from client.Client, key types.NamespacedName, now time.Time) (*Move, error) {
	infra := &v1alpha1.Infra{}
	if err := from.Get(ctx, key, infra); err != nil {
		return nil, fmt.Errorf("reading Infra %s: %w", key, err)
	}
	if infra.Annotations[names.AnnotationGiven] == "" {
		return nil, fmt.Errorf("Infra %s has no addresses yet, so that nothing has to stay: apply it to the other cluster as it is", key)
	}
	m := &Move{Infra: carried(infra)}
	if err := m.readNetwork(ctx, from); err != nil {
		return nil, err
	}
	if err := m.readLeases(ctx, from, now); err != nil {
		return nil, err
	}
	return m, m.readGrants(ctx, from)
}

func carried(infra *v1alpha1.Infra) *v1alpha1.Infra {
	out := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: infra.Namespace, Name: infra.Name, Labels: infra.Labels}, Spec: *infra.Spec.DeepCopy()}
	out.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Infra"))
	out.Annotations = maps.Clone(infra.Annotations)
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	out.Annotations[names.AnnotationPaused] = "true"
	return out
}

func (m *Move) leave(format string, args ...any) {
	m.Left = append(m.Left, fmt.Sprintf(format, args...))
}

// readNetwork reads the NetworkAttachmentDefinition. One that a controller renders would be reverted, or removed.
func (m *Move) readNetwork(ctx context.Context, from client.Client) error {
	key, network := input.Refs(m.Infra).NAD, &nad.NetworkAttachmentDefinition{}
	switch err := from.Get(ctx, key, network); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		m.leave("NetworkAttachmentDefinition %s does not exist here: create it there", key)
		return nil
	case err != nil:
		return fmt.Errorf("reading NetworkAttachmentDefinition %s: %w", key, err)
	}
	if by, rendered := network.Renderer(); rendered {
		m.leave("NetworkAttachmentDefinition %s is rendered from %s %s: apply that there", key, by.Kind, by.Name)
		return nil
	}
	m.Network = &nad.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: network.Labels, Annotations: maps.Clone(network.Annotations)}, Spec: network.Spec,
	}
	m.Network.SetGroupVersionKind(nad.GroupVersion.WithKind("NetworkAttachmentDefinition"))
	delete(m.Network.Annotations, corev1.LastAppliedConfigAnnotation)
	return nil
}

const pageSize = 500

func (m *Move) readLeases(ctx context.Context, from client.Client, now time.Time) error {
	server := names.DHCPServer(m.Infra.Name)
	long := 2 * ptr.Deref(m.Infra.Spec.InfraComponents.DHCP.LeaseTime, metav1.Duration{Duration: valid.DefaultLease}).Duration
	_, err := daemon.Pages(&v1alpha1.DHCPLeaseList{}, pageSize, func(page *v1alpha1.DHCPLeaseList, limits ...client.ListOption) error {
		err := from.List(ctx, page, append(limits, client.InNamespace(m.Infra.Namespace), client.MatchingFields{v1alpha1.LeaseFieldServer: server})...)
		for i := range page.Items {
			m.Leases = append(m.Leases, m.lease(&page.Items[i], server, now.Add(long)))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading leases: %w", err)
	}
	return nil
}

// lease is one as it is carried: without a virtual machine, which need not exist there, and would end the lease by its absence
// (dhcp-rules.md#lease-7). Its client has it until the horizon then, and time enough to ask.
func (m *Move) lease(l *v1alpha1.DHCPLease, server string, horizon time.Time) v1alpha1.DHCPLease {
	out := v1alpha1.DHCPLease{Spec: *l.Spec.DeepCopy()}
	out.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("DHCPLease"))
	out.Namespace, out.Name = l.Namespace, l.Name
	out.Labels = map[string]string{names.LabelServer: server, names.LabelInfra: m.Infra.Name, names.LabelInfraNamespace: m.Infra.Namespace}
	if out.Spec.State == v1alpha1.LeaseBound && out.Spec.VMRef != nil {
		out.Spec.VMRef = nil
		if out.Spec.DurableUntilTime.Time.Before(horizon) {
			out.Spec.DurableUntilTime = metav1.NewMicroTime(horizon)
		}
	}
	return out
}

// readGrants says what else the Infra refers to.
func (m *Move) readGrants(ctx context.Context, from client.Client) error {
	key := input.Refs(m.Infra).HostedCluster
	if key.Name != "" {
		m.leave("HostedCluster %s and its NodePools: move them first (HyperShift's disaster recovery)", key)
	}
	if m.Infra.Spec.AppsIngress != nil {
		m.leave("appsIngress needs its Role there, too: docs/APPS_INGRESS.md. Remove the Infra here only when its HostedCluster is gone from here, because it takes its Service in the hosted cluster with it")
	}
	for _, e := range m.Infra.Spec.ExtraEndpoints {
		if e.Target.Service != "" {
			m.leave("extraEndpoints %s is Service %s: create it there", e.Name, e.Target.Service)
		}
	}
	for _, name := range []string{key.Namespace, string(m.Infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace)} {
		namespace := &corev1.Namespace{}
		if name == "" || name == m.Infra.Namespace {
			continue
		}
		if err := from.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Namespace %s: %w", name, err)
		}
		if granted := namespace.Annotations[names.AnnotationAllowedNamespaces]; granted != "" {
			m.leave("Namespace %[1]s allows others to refer to it: kubectl annotate namespace %[1]s %[2]s=%[3]s", name, names.AnnotationAllowedNamespaces, granted)
		}
	}
	return nil
}
