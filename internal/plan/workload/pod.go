package workload

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// pod is all that users and the cluster decide about a child's pod. Its methods make every template from it and from the manager's own
// settings, so its digest does not change for a newer manager alone (template_update.go). Newer managers compare that digest: a new field must
// be omitted from the JSON while it is empty.
type pod struct {
	App        string              `json:"app"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Instance   int                 `json:"instance,omitempty"`
	Infra      map[string]string   `json:"infra,omitempty"` // the labels that name it
	Attachment v1alpha1.Attachment `json:"attachment"`
	Network    string              `json:"network"`   // what was decided about the network
	Addresses  []netip.Prefix      `json:"addresses"` // of the VLAN interface; the server's own is first
	Placement  v1alpha1.Placement  `json:"placement"`
	Image      string              `json:"image,omitempty"` // of the daemon, as in the spec
	EnvoyImage string              `json:"envoyImage,omitempty"`

	former []string // older managers' values of Network for the same decision
	cni    string   // the attached network's configuration; if that is derived, the manager wrote it
	// Nodes with the VLAN: NodePools name them by labels, the attached network by a resource. A change of either is for the next pod, and
	// replaces none.
	nodes  map[string]string
	device string
}

func podOf(server metav1.Object, app string, network *nad.NetworkAttachmentDefinition, a v1alpha1.Attachment, addresses []netip.Prefix) pod {
	p := pod{App: app, Namespace: server.GetNamespace(), Name: server.GetName(), Infra: map[string]string{}, Attachment: a, Addresses: addresses, cni: network.Spec.Config}
	p.Network, p.former = decidedOf(network)
	p.nodes, _ = labels.ConvertSelectorToLabelsMap(server.GetAnnotations()[names.AnnotationNodes]) // of a malformed annotation, what precedes the fault
	p.device = network.Resource()
	for _, l := range []string{names.LabelInfra, names.LabelInfraNamespace} {
		if value := server.GetLabels()[l]; value != "" {
			p.Infra[l] = value
		}
	}
	return p
}

// decidedOf is what was decided about a network, and the values of older managers for the same. Of a network that we derived, that is what it
// was derived from; of one that is attached to as it is, what its configuration means, not its text.
func decidedOf(network *nad.NetworkAttachmentDefinition) (decided string, former []string) {
	if inputs := network.Annotations[names.AnnotationInputs]; inputs != "" {
		return inputs, strings.Split(network.Annotations[names.AnnotationFormerInputs], ",")
	}
	config, err := nad.Parse(network.Spec.Config)
	if err != nil {
		return network.Spec.Config, nil
	}
	return desired.Digest(config.Attachment()), []string{network.Spec.Config}
}

// own is the name of the child's objects other than its workload.
func (p pod) own() string { return names.Own(p.App, p.Name) }

// selector selects this child's pods and no others.
func (p pod) selector() map[string]string {
	return map[string]string{names.LabelApp: p.App, names.LabelInstance: p.Name}
}

// instance selects one instance's pods. The first has no number, as when it was the only one: a StatefulSet adopts no pod that is not named
// after it (kubernetes, pkg/controller/statefulset, isMemberOf).
func (p pod) instance() map[string]string {
	all := p.selector()
	if p.Instance > 0 {
		all[names.LabelOrdinal] = strconv.Itoa(p.Instance)
	}
	return all
}

// template meets Pod Security level restricted, without a uid (OpenShift gives each namespace its own range).
func (p pod) template(s input.Settings, spec *accore.PodSpecApplyConfiguration) *accore.PodTemplateSpecApplyConfiguration {
	// Off here and not in the ServiceAccount, because pods of older templates get their token through that.
	spec.WithServiceAccountName(p.own()).WithAutomountServiceAccountToken(false).WithSecurityContext(podSecurity()).
		WithVolumes(emptyDir(stateVolume), token()).WithAffinity(p.apart())
	p.place(spec)
	for _, name := range s.ImagePullSecrets {
		spec.WithImagePullSecrets(accore.LocalObjectReference().WithName(name))
	}
	labels := p.instance()
	labels[names.LabelManagedBy] = names.ManagedBy
	maps.Copy(labels, p.Infra)
	return accore.PodTemplateSpec().WithLabels(labels).WithSpec(spec).
		WithAnnotations(map[string]string{names.AnnotationNetworks: p.networks(), names.AnnotationNetwork: p.attached()})
}

// attached is a digest of the network's configuration.
func (p pod) attached() string {
	config, err := nad.Parse(p.cni)
	if err != nil {
		return desired.Digest(p.cni)
	}
	return desired.Digest(config.Attachment())
}

// tuned says whether the attachment switches forwarding off; the daemon then is not Ready while it is on.
func (p pod) tuned() bool { return p.network().PreventsForwarding() }

// network is the attachment's configuration; zero if it cannot be parsed.
func (p pod) network() nad.Config {
	config, err := nad.Parse(p.cni)
	if err != nil {
		return nad.Config{}
	}
	return config
}

func podSecurity() *accore.PodSecurityContextApplyConfiguration {
	// The daemons bind ports below 1024 without any capability.
	return accore.PodSecurityContext().WithRunAsNonRoot(true).
		WithSeccompProfile(accore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithSysctls(accore.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
}

func (p pod) place(spec *accore.PodSpecApplyConfiguration) {
	if len(p.Placement.NodeSelector) > 0 {
		spec.WithNodeSelector(p.Placement.NodeSelector)
	} else {
		spec.WithNodeSelector(p.nodes)
	}
	if p.Placement.PriorityClassName != "" {
		spec.WithPriorityClassName(string(p.Placement.PriorityClassName))
	}
	for _, t := range p.Placement.Tolerations {
		spec.WithTolerations(desired.As[accore.TolerationApplyConfiguration](t))
	}
}

// apart prefers different nodes for the instances of one component.
func (p pod) apart() *accore.AffinityApplyConfiguration {
	term := accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(acmeta.LabelSelector().WithMatchLabels(p.selector()))
	return accore.Affinity().WithPodAntiAffinity(accore.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(accore.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(term)))
}

// networks is the annotation for Multus. It has the addresses unless the network's configuration has them: OVN-Kubernetes and the
// capability `ips` take them from here.
func (p pod) networks() string {
	type attachment struct {
		Name      string   `json:"name"`
		Namespace string   `json:"namespace"`
		Interface string   `json:"interface"`
		MAC       string   `json:"mac"`
		IPs       []string `json:"ips,omitempty"`
	}
	a := attachment{
		Name: string(p.Attachment.NetworkAttachmentDefinition), Namespace: cmp.Or(string(p.Attachment.NetworkAttachmentNamespace), p.Namespace),
		Interface: names.VLANInterface, MAC: p.mac(),
	}
	for _, ip := range p.asked() {
		a.IPs = append(a.IPs, ip.String())
	}
	text, err := json.Marshal([]attachment{a})
	if err != nil {
		panic(err) // strings encode
	}
	return string(text)
}

// asked are the addresses that the annotation has to have.
func (p pod) asked() []netip.Prefix {
	if p.network().BakesAddresses() {
		return nil
	}
	return p.Addresses
}

func (p pod) mac() string {
	if written := string(p.Attachment.MACAddress); written != "" {
		return written
	}
	return names.MAC(p.Namespace, p.Name, p.Addresses[0].Addr())
}

// within adds the length of its network to an address: the full length if the network does not contain it.
func within(address, network string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	if n, err := netip.ParsePrefix(network); err == nil && n.Contains(a) {
		return netip.PrefixFrom(a, n.Bits())
	}
	return netip.PrefixFrom(a, a.BitLen())
}
