package plan

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/permit"
)

// Child is everything that planning the workload of one DHCPServer, DNSServer or ProxyServer looks at.
type Child[T metav1.Object] struct {
	Settings Settings
	Server   T
	// NAD that the server attaches to; nil while it is not there.
	NAD *nad.NetworkAttachmentDefinition
	// Unoffered: no node has the resource that the NAD asks for, as where nothing counts bridges (KubeVirt's bridge-marker does).
	Unoffered bool
	// Running are the annotations of the server's workload: they say what was released. Nil while there is none.
	Running map[string]string
	// Now is how its workload is, and what a new template of it waits for.
	Now Now
	// Bootstrap of Envoy as it is, for the proxy.
	Bootstrap string
	// Infra that controls the server; nil when it stands alone.
	Infra *v1alpha1.Infra
	// Lent is the control plane's namespace that this Infra may use; empty while it may not.
	Lent string
	// Namespaces that the server refers to.
	Namespaces []corev1.Namespace
	// Services that its pods reach, and their EndpointSlices: APIService, those that it names, and those with an address that it names.
	Services       []corev1.Service
	EndpointSlices []discoveryv1.EndpointSlice
}

// ChildPlan is what one child becomes.
type ChildPlan struct {
	Plan
	// Held means that nothing may change: what runs stays as it is. The findings say why.
	Held bool
	// AwaitsImages, AwaitsTurn: a new template waits for its images to be pulled, or for those of other Infras to serve.
	AwaitsImages, AwaitsTurn bool
}

// workload is one child's worth of objects, whatever it serves.
type workload struct {
	pod
	settings Settings
	kind     string
	server   metav1.Object
	running  map[string]string
	now      Now
}

func workloadOf[T metav1.Object](in Child[T], app, kind string, a v1alpha1.Attachment, addresses ...netip.Prefix) workload {
	pod := podOf(in.Server, app, in.NAD, a, addresses)
	if in.Unoffered {
		pod.device = ""
	}
	return workload{pod: pod, settings: in.Settings, kind: kind, server: in.Server, running: in.Running, now: in.Now}
}

func (w workload) name() string      { return w.server.GetName() }
func (w workload) namespace() string { return w.server.GetNamespace() }

// labels of everything that the child owns; those of its Infra are handed on.
func (w workload) labels() map[string]string {
	all := w.selector()
	all[names.LabelManagedBy] = names.ManagedBy
	all[names.LabelOwnerUID] = string(w.server.GetUID())
	maps.Copy(all, w.Infra)
	return all
}

func (w workload) owner() *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(w.kind).WithName(w.name()).WithUID(w.server.GetUID()).
		WithController(true).WithBlockOwnerDeletion(true)
}

// references judges what the child refers to in other namespaces: its NAD, and the namespaces in targets by field.
func (in Child[T]) references(a v1alpha1.Attachment, targets map[string]v1alpha1.ObjectName) []finding.Finding {
	from := in.Server.GetNamespace()
	attached := permit.Reference{
		Field: "networkConfig.networkAttachmentDefinition", From: from, Kind: "network-attachment-definition",
		Namespace: orElse(string(a.NetworkAttachmentNamespace), from), Name: string(a.NetworkAttachmentDefinition), Lent: in.Settings.NADSourceNamespaces,
	}
	if in.NAD != nil {
		attached.Annotations = in.NAD.Annotations
	}
	refs := []permit.Reference{attached}
	for _, field := range slices.Sorted(maps.Keys(targets)) {
		refs = append(refs, in.target(field, string(targets[field])))
	}
	if refused := permit.Check(refs...); refused != nil {
		return refused
	}
	if in.NAD == nil { // what it says shapes the pod: while it is away, what runs stays as it is
		return []finding.Finding{finding.Wait(v1alpha1.ConditionAccepted, "NADNotFound").
			Say("NetworkAttachmentDefinition %s/%s not found; create it, or set networkConfig.networkAttachmentDefinition", attached.Namespace, attached.Name)}
	}
	return nil
}

// Permits says whether the child may refer to what is in a namespace.
func (in Child[T]) Permits(namespace string) bool { return in.target("", namespace).Allowed() }

func (in Child[T]) target(field, namespace string) permit.Reference {
	r := permit.Reference{Field: field, From: in.Server.GetNamespace(), Kind: "namespace", Namespace: namespace, Name: namespace, Lent: []string{in.Lent}}
	for _, n := range in.Namespaces {
		if n.Name == namespace {
			r.Annotations = n.Annotations
		}
	}
	return r
}

// held is the plan while something forbids a change.
func held(findings []finding.Finding) (ChildPlan, bool) {
	p := ChildPlan{}
	p.Find(findings...)
	p.Held = p.Refused(v1alpha1.ConditionAccepted)
	return p, p.Held
}
