package workload

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// workload makes the objects of one instance of a child of any kind.
type workload struct {
	pod
	settings input.Settings
	serves   component.Component
	server   metav1.Object
	running  map[string]string
	now      Now
	peers    []Instance // the other instances
	moving   bool       // an earlier one gets another template in this plan, or waits for it
}

func workloadOf[T component.Server](in Child[T], addresses ...netip.Prefix) workload {
	serves, _ := component.Of(in.Server)
	pod := podOf(in.Server, string(serves.Name), in.NAD, serves.Written(in.Server).Attachment, addresses)
	if in.Unoffered {
		pod.device = ""
	}
	return workload{pod: pod, settings: in.Settings, serves: serves, server: in.Server, running: in.Running, now: in.Now, peers: in.Further}
}

// serverIPs are the addresses of a server's instances, with the length of their network.
func serverIPs(server component.Server, network string) (all []netip.Prefix) {
	serves, _ := component.Of(server)
	for _, ip := range serves.Written(server).ServerIPs() {
		all = append(all, within(string(ip), network))
	}
	return all
}

// workloadsOf a server are one for each instance whose pod has a network, in order; the first one's pod has the captured addresses too. Call it
// after references, which says what has no network.
func workloadsOf[T component.Server](in Child[T], addresses []netip.Prefix, placement v1alpha1.Placement, image string, captured ...netip.Prefix) []workload {
	all := []workload{workloadOf(in, append(addresses[:1:1], captured...)...)}
	for i, further := range in.Further {
		if further.NAD == nil {
			continue
		}
		w := all[0]
		w.pod = podOf(in.Server, w.App, further.NAD, InstanceAttachment(w.serves.Written(in.Server).Attachment, in.NAD, i+1), addresses[i+1:i+2])
		w.device, w.Instance, w.running, w.now = all[0].device, i+1, further.Running, further.Now
		w.peers = slices.Concat([]Instance{in.Instance}, in.Further[:i], in.Further[i+1:])
		all = append(all, w)
	}
	for i := range all {
		all[i].Placement, all[i].Image = placement, image
	}
	return all
}

func (w workload) name() string { return w.server.GetName() }

func (w workload) namespace() string { return w.server.GetNamespace() }

// labels of everything that the child owns, including those that name its Infra.
func (w workload) labels() map[string]string {
	all := w.selector()
	all[names.LabelManagedBy] = names.ManagedBy
	all[names.LabelOwnerUID] = string(w.server.GetUID())
	maps.Copy(all, w.Infra)
	return all
}

func (w workload) owner() *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(w.serves.Kind).WithName(w.name()).WithUID(w.server.GetUID()).
		WithController(true).WithBlockOwnerDeletion(true)
}

// chosenTemplate is the template of a workload's pods, the annotations that tell the next manager of it, and the pods' rights.
type chosenTemplate struct {
	template    *accore.PodTemplateSpecApplyConfiguration
	text        string // the template as JSON
	annotations map[string]string
	rules       []*acrbac.PolicyRuleApplyConfiguration
	kept        bool // it is not the newest
}

// here is a digest of what the users of this child decided, and not those of its network.
func (w workload) here() string {
	w.Network = ""
	return desired.Digest(w.pod)
}

// decidedHere says whether here has changed since the last template was sealed.
func (w workload) decidedHere() bool {
	parts := strings.Split(w.running[names.AnnotationSeal], ".")
	return len(parts) == 3 && parts[2] != w.here()
}

// release is the command that has the newest template applied.
func (w workload) release() string {
	return fmt.Sprintf("kubectl -n %s annotate statefulset,deployment -l %s %s-", w.namespace(), labels.FormatLabels(w.selector()), names.AnnotationSeal)
}
