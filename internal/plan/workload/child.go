// Package workload plans what one DHCPServer, DNSServer or ProxyServer gets: its pod and all that belongs to it.
package workload

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// Child is everything from which the workload of one DHCPServer, DNSServer or ProxyServer is planned.
type Child[T component.Server] struct {
	Server T
	Surroundings
}

// Surroundings are what else a server's plan depends on.
type Surroundings struct {
	Settings input.Settings
	// Instance is the first one, whose network the server names; Further are the others.
	Instance
	Further []Instance
	// Lookouts are the DNS instances on a proxy's VLAN.
	Lookouts []Lookout
	// Unoffered: no node has the resource that the NAD requests, e.g. because KubeVirt's bridge-marker, which counts bridges, is not
	// installed.
	Unoffered bool
	// Infra that controls the server; nil if none does.
	Infra *v1alpha1.Infra
	// AllowedNamespace is the control plane's namespace that this Infra may use; empty if it may not.
	AllowedNamespace string
	// Namespaces that the server refers to.
	Namespaces []corev1.Namespace
	// Services that its pods reach, and their EndpointSlices: APIService, those that it names, and those with an address that it names.
	Services       []corev1.Service
	EndpointSlices []discoveryv1.EndpointSlice
	// InPart are those of its workloads, its last template's bootstrap and the Services that it names that the cache does not keep whole.
	InPart []kept.Object
}

// Instance is the state of one instance of a server.
type Instance struct {
	// NAD that its pod attaches to; nil if it does not exist.
	NAD *nad.NetworkAttachmentDefinition
	// Running are the annotations of its workload, which have the last template; nil if there is no workload.
	Running map[string]string
	// Bootstrap of Envoy that its ConfigMap has; only for a proxy.
	Bootstrap string
	// Now is the state of its workload, and what a new template of it waits for.
	Now Now
	// Pods that are not to end; only for a proxy.
	Pods []RunningPod
}

// Lookout is a DNS instance that connects to the proxies over the VLAN.
type Lookout struct {
	// Node of its pod; empty if it has none, or if that node does not report.
	Node string
	// Said is what the DNSServer's status has of it.
	Said v1alpha1.Instance
}

// RunningPod is a pod that is not to end.
type RunningPod struct {
	types.NamespacedName
	UID types.UID
	// Settled: it has had its time to be found on the VLAN.
	Settled bool
	// Stranded: its node has not reported for UnreachableSeconds.
	Stranded bool
}

func (s Surroundings) instances() []Instance { return append([]Instance{s.Instance}, s.Further...) }

// EachInstance calls change for each instance.
func (s *Surroundings) EachInstance(change func(*Instance)) {
	change(&s.Instance)
	for i := range s.Further {
		change(&s.Further[i])
	}
}

// References of a server: what it attaches to, the namespaces that it names, and what its pods dial beside the API.
type References struct {
	Attachment v1alpha1.Attachment
	Namespaces []string
	Services   []types.NamespacedName
	Addresses  []netip.AddrPort
}

// Now is the state of an instance's workload, and of all others, that decides when a new template is applied.
type Now struct {
	// Serves: a pod of the workload is Ready. Rolled: and it has the workload's template.
	Serves, Rolled bool
	// Starts: no pod of the workload is Ready, and none has had LongestStart to become so.
	Starts bool
	// Pullers are the pods that pull images for this child.
	Pullers []corev1.Pod
	// PullOver: such a pod is older than LongestPull, or cannot be created.
	PullOver bool
	// Turn: no other Infra's pods are being replaced.
	Turn bool
	// Ending is a pod that is to end and may not be able to; only for a proxy. Empty if there is none.
	Ending EndingPod
}

// EndingPod is a pod that is to end on a node that does not report, or that is lost to the VLAN (names.LabelLost).
type EndingPod struct{ Name, Node string }

// ChildPlan is what one child gets.
type ChildPlan struct {
	desired.Plan
	// Frozen means that nothing may change: what runs is left as it is. The findings say why.
	Frozen bool
	// AwaitsImages, AwaitsTurn, AwaitsPeer: a new template waits until its images are pulled, until the pods of another Infra serve, or
	// until another instance does.
	AwaitsImages, AwaitsTurn, AwaitsPeer bool
	// Next is the instance whose template waits for its turn.
	Next int
	// Lost are the pods that have to come up on another node; LostLater: there are others, which are too young.
	Lost      []RunningPod
	LostLater bool
}

// references judges what the child refers to in other namespaces: its NAD, and the namespaces in targets by field.
func (in Child[T]) references(a v1alpha1.Attachment, targets map[string]v1alpha1.ObjectName) []finding.Finding {
	if large := kept.Judge(v1alpha1.ConditionAccepted, kept.Object(in.Server)); len(large) > 0 {
		return large
	}
	var refs []refgrant.Reference
	networks := []kept.Object{}
	for i, instance := range in.instances() {
		refs = append(refs, in.attached(InstanceAttachment(a, in.NAD, i), instance.NAD))
		networks = append(networks, instance.NAD)
	}
	for _, field := range slices.Sorted(maps.Keys(targets)) {
		refs = append(refs, in.target(field, string(targets[field])))
	}
	if refused := refgrant.Check(refs...); refused != nil {
		return refused
	}
	if large := kept.Judge(v1alpha1.ConditionAccepted, append(slices.Clone(in.InPart), networks...)...); len(large) > 0 {
		return large
	}
	for i, instance := range in.instances() {
		if instance.NAD == nil {
			return []finding.Finding{in.lacksNetwork(i, instance, refs[i])}
		}
	}
	return nil
}

// lacksNetwork: a pod depends on its network. Without it, what runs is left as it is; a further instance that does not run yet keeps nobody else
// waiting.
func (in Child[T]) lacksNetwork(number int, instance Instance, network refgrant.Reference) finding.Finding {
	f, remedy := finding.Wait(v1alpha1.ConditionAccepted, "NADNotFound"), "set networkConfig.networkAttachmentDefinition"
	if number > 0 {
		serves, _ := component.Of(in.Server)
		remedy = fmt.Sprintf("have one instance only: omit networkConfig.additionalServerIPs, or set an Infra's %s.replicas: 1", serves.Name)
	}
	if number > 0 && instance.Running == nil {
		f = finding.Fail(v1alpha1.InstanceCondition(v1alpha1.ConditionReady, number), "NADNotFound")
	}
	return f.Say("NetworkAttachmentDefinition %s/%s not found; create it, or %s", network.Namespace, network.Name, remedy)
}

// attached is the reference of one instance to its network.
func (in Child[T]) attached(a v1alpha1.Attachment, network *nad.NetworkAttachmentDefinition) refgrant.Reference {
	from := in.Server.GetNamespace()
	r := refgrant.Reference{
		Field: "networkConfig.networkAttachmentDefinition", From: from, Kind: "network-attachment-definition",
		Namespace: cmp.Or(string(a.NetworkAttachmentNamespace), from), Name: string(a.NetworkAttachmentDefinition), AllowedNamespaces: in.Settings.NADSourceNamespaces,
	}
	if network != nil {
		r.Annotations = network.Annotations
	}
	return r
}

// Granted says whether the child may refer to objects in a namespace.
func (in Child[T]) Granted(namespace string) bool { return in.target("", namespace).Allowed() }

func (in Child[T]) target(field, namespace string) refgrant.Reference {
	r := refgrant.Reference{Field: field, From: in.Server.GetNamespace(), Kind: "namespace", Namespace: namespace, Name: namespace, AllowedNamespaces: []string{in.AllowedNamespace}}
	for _, n := range in.Namespaces {
		if n.Name == namespace {
			r.Annotations = n.Annotations
		}
	}
	return r
}

// judged is a plan with findings, and whether they forbid a change.
func judged(findings []finding.Finding) (ChildPlan, bool) {
	p := ChildPlan{}
	p.Find(findings...)
	p.Frozen = p.Blocked(v1alpha1.ConditionAccepted)
	return p, p.Frozen
}
