package plan

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	// Running is the workload's pod template as it is, with the workload's annotations; nil before the first roll-out.
	Running *Running
	// Infra that controls the server; nil when it stands alone.
	Infra *v1alpha1.Infra
	// Lent is the control plane's namespace that this Infra may use; empty while it may not.
	Lent string
	// Namespaces that the server refers to.
	Namespaces []corev1.Namespace
}

// Running is what a workload runs now.
type Running struct {
	Annotations map[string]string
	Template    corev1.PodTemplateSpec
}

// ChildPlan is what one child becomes.
type ChildPlan struct {
	Plan
	// Held means that nothing may change: what runs stays as it is. The findings say why.
	Held bool
}

// workload is one child's worth of objects, whatever it serves.
type workload struct {
	settings   Settings
	app, kind  string
	server     metav1.Object
	attachment v1alpha1.Attachment
	addresses  []netip.Prefix // of the VLAN interface, the server's own first
	placement  v1alpha1.Placement
	nad        *nad.NetworkAttachmentDefinition
	running    *Running
	grace      int64
}

func workloadOf[T metav1.Object](in Child[T], app, kind string) workload {
	return workload{settings: in.Settings, app: app, kind: kind, server: in.Server, nad: in.NAD, running: in.Running, grace: 5}
}

func (w workload) name() string      { return w.server.GetName() }
func (w workload) namespace() string { return w.server.GetNamespace() }

// own is the name of what the child has beside its workload.
func (w workload) own() string { return names.Own(w.app, w.name()) }

// selector picks this child's pods and nobody else's.
func (w workload) selector() map[string]string {
	return map[string]string{names.LabelApp: w.app, names.LabelInstance: w.name()}
}

// labels of everything that the child owns; those of its Infra are handed on.
func (w workload) labels() map[string]string {
	all := w.selector()
	all[names.LabelManagedBy] = names.ManagedBy
	all[names.LabelOwnerUID] = string(w.server.GetUID())
	maps.Copy(all, w.infraLabels())
	return all
}

func (w workload) infraLabels() map[string]string {
	all := map[string]string{}
	for _, l := range []string{names.LabelInfra, names.LabelInfraNamespace} {
		if value := w.server.GetLabels()[l]; value != "" {
			all[l] = value
		}
	}
	return all
}

func (w workload) owner() *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(w.kind).WithName(w.name()).WithUID(w.server.GetUID()).
		WithController(true).WithBlockOwnerDeletion(true)
}

// tuned says whether the attachment switches forwarding off; the daemon then holds back readiness while it is on.
func (w workload) tuned() bool { return w.network().PreventsForwarding() }

// network is the attachment's configuration; the zero one while it is not there or cannot be read.
func (w workload) network() nad.Config {
	if w.nad == nil {
		return nad.Config{}
	}
	config, err := nad.Parse(w.nad.Spec.Config)
	if err != nil {
		return nad.Config{}
	}
	return config
}

// imageOverrides: an editor of a namespace must not choose code that runs on the VLAN.
func imageOverrides(s Settings, images map[string]string) []finding.Finding {
	var all []finding.Finding
	for _, field := range slices.Sorted(maps.Keys(images)) {
		if images[field] != "" && !s.AllowImageOverride {
			all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "ImageOverrideNotAllowed").
				Say("%s is set; remove it, or have the operator run with --allow-image-override", field))
		}
	}
	return all
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
