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

// pod is all that users and the cluster decide of a child's pod. Every template is made by its methods, from it and the
// manager's own settings, so that a digest of it tells whether anybody but a newer manager wants another pod (template_update.go).
// Newer managers compare that digest: what is added here is left out of the JSON while it is empty.
type pod struct {
	App        string              `json:"app"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Instance   int                 `json:"instance,omitempty"`
	Infra      map[string]string   `json:"infra,omitempty"` // the labels that name it
	Attachment v1alpha1.Attachment `json:"attachment"`
	Network    string              `json:"network"`   // what was decided about the network
	Addresses  []netip.Prefix      `json:"addresses"` // of the VLAN interface, the server's own first
	Placement  v1alpha1.Placement  `json:"placement"`
	Image      string              `json:"image,omitempty"` // of the daemon, as it was written
	EnvoyImage string              `json:"envoyImage,omitempty"`

	former []string // what older managers took for Network, of the same decision
	cni    string   // the attached network's configuration; a derived one is the manager's work
	// Where the VLAN is, as others say: NodePools by labels, the attached network by a resource. Both are the next pod's, and no
	// reason to replace one.
	nodes  map[string]string
	device string
}

func podOf(server metav1.Object, app string, network *nad.NetworkAttachmentDefinition, a v1alpha1.Attachment, addresses []netip.Prefix) pod {
	p := pod{App: app, Namespace: server.GetNamespace(), Name: server.GetName(), Infra: map[string]string{}, Attachment: a, Addresses: addresses, cni: network.Spec.Config}
	p.Network, p.former = decidedOf(network)
	p.nodes, _ = labels.ConvertSelectorToLabelsMap(server.GetAnnotations()[names.AnnotationNodes]) // what no node can have, places nothing
	p.device = network.Resource()
	for _, l := range []string{names.LabelInfra, names.LabelInfraNamespace} {
		if value := server.GetLabels()[l]; value != "" {
			p.Infra[l] = value
		}
	}
	return p
}

// decidedOf says what was decided of a network, and what older managers took for the same: of one that we derived, what it was
// derived from; of one that is attached to as it is, what its configuration says, however it is written.
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

// own is the name of what the child has beside its workload.
func (p pod) own() string { return names.Own(p.App, p.Name) }

// selector picks this child's pods and nobody else's.
func (p pod) selector() map[string]string {
	return map[string]string{names.LabelApp: p.App, names.LabelInstance: p.Name}
}

// instance picks one instance's pods; the first has no number, as before there were several. A StatefulSet takes over no pod that is
// not named after it (kubernetes, pkg/controller/statefulset, isMemberOf).
func (p pod) instance() map[string]string {
	all := p.selector()
	if p.Instance > 0 {
		all[names.LabelOrdinal] = strconv.Itoa(p.Instance)
	}
	return all
}

// template is Pod Security restricted, without a uid (OpenShift gives each namespace its own range).
func (p pod) template(s input.Settings, spec *accore.PodSpecApplyConfiguration) *accore.PodTemplateSpecApplyConfiguration {
	// Off here and not at the ServiceAccount: pods of older templates have their token by way of that.
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

// attached is a digest of the configuration.
func (p pod) attached() string {
	config, err := nad.Parse(p.cni)
	if err != nil {
		return desired.Digest(p.cni)
	}
	return desired.Digest(config.Attachment())
}

// tuned says whether the attachment switches forwarding off; the daemon then holds back readiness while it is on.
func (p pod) tuned() bool { return p.network().PreventsForwarding() }

// network is the attachment's configuration; the zero one while it cannot be read.
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

// apart keeps the instances of one component on different nodes where there are several.
func (p pod) apart() *accore.AffinityApplyConfiguration {
	term := accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(acmeta.LabelSelector().WithMatchLabels(p.selector()))
	return accore.Affinity().WithPodAntiAffinity(accore.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(accore.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(term)))
}

// networks is Multus' annotation. Addresses are asked for where the attachment does not bake them in: OVN-Kubernetes and
// the capability `ips` take them from here.
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

// asked are the addresses that the attachment has to be told.
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

// within gives an address the length of its network; alone it is a network of its own.
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
