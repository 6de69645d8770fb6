package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/permit"
)

// Provisioning is everything that making an Infra from a HostedCluster looks at.
type Provisioning struct {
	HostedCluster *hyperv1.HostedCluster
	// NodePools of the HostedCluster.
	NodePools []hyperv1.NodePool
	// Infra of the HostedCluster's name and namespace; nil when there is none.
	Infra *v1alpha1.Infra
	// NAD of Attachment; nil when it is not there, or nothing is.
	NAD *nad.NetworkAttachmentDefinition
	// OnVLAN are the Infras on the layer 2 of NAD.
	OnVLAN []Neighbour
	// Lent are the namespaces whose NetworkAttachmentDefinitions Multus lends to every pod.
	Lent []string
}

// ProvisioningPlan is what a HostedCluster's annotation asks for.
type ProvisioningPlan struct {
	// Infra to be there. Nil when none is asked for, or while something is missing: then what there is stays as it is.
	Infra *ac.InfraApplyConfiguration
	// Release the Infra that there is: nothing asks for it any more, and a slip in a Git repository must not take
	// production away.
	Release bool
	// Findings become events on the HostedCluster, which has no conditions of ours.
	Findings []finding.Finding
}

// Provision says what a HostedCluster's annotation asks for. One that is being deleted is left alone: its Infra goes with
// it, by ownerReference.
func Provision(in Provisioning) ProvisioningPlan {
	d := derivation{Provisioning: in}
	asked, set := in.HostedCluster.Annotations[names.AnnotationInfra]
	switch {
	case in.HostedCluster.DeletionTimestamp != nil:
		return ProvisioningPlan{}
	case asked == names.InfraAuto:
		return d.plan()
	case set:
		d.refuse(names.AnnotationInfra, asked, names.InfraAuto, errors.New("only auto is known; where no Infra is wanted, remove it"))
		return ProvisioningPlan{Findings: d.findings}
	case in.Infra != nil && metav1.IsControlledBy(in.Infra, in.HostedCluster):
		return ProvisioningPlan{Release: true, Findings: []finding.Finding{d.released()}}
	}
	return ProvisioningPlan{}
}

// Made says that the Infra of a plan is there now.
func (p ProvisioningPlan) Made() finding.Finding {
	network := p.Infra.Spec.NetworkConfig
	return finding.Note(finding.Provisioned, "InfraMade").Say("Infra %s/%s is made for subnet %s of NetworkAttachmentDefinition %s/%s",
		*p.Infra.Namespace, *p.Infra.Name, *network.CIDR, *network.NetworkAttachmentNamespace, *network.NetworkAttachmentDefinition)
}

func (d *derivation) released() finding.Finding {
	active := int32(0)
	if leases := d.Infra.Status.Leases; leases != nil {
		active = leases.Active
	}
	hc := d.HostedCluster
	return finding.Wrong(finding.Provisioned, "InfraReleased").
		Say("annotation %s is gone: Infra %s/%s is kept with its %d active leases, and no longer follows or goes with this HostedCluster; to take it back: %s; to remove it: kubectl -n %s delete infra %s",
			names.AnnotationInfra, hc.Namespace, hc.Name, active, d.command(names.AnnotationInfra, names.InfraAuto), hc.Namespace, hc.Name)
}

// derivation reads an Infra off a HostedCluster and its NodePools; an annotation wins over what is derived.
type derivation struct {
	Provisioning
	findings []finding.Finding
}

func (d *derivation) plan() ProvisioningPlan {
	d.checkName()
	d.checkKeys()
	network := ac.NetworkConfig()
	key := d.attachment()
	if key.Name != "" {
		network.WithNetworkAttachmentDefinition(v1alpha1.ObjectName(key.Name)).WithNetworkAttachmentNamespace(v1alpha1.ObjectName(key.Namespace))
	}
	cidr := d.cidr(key)
	network.WithCIDR(v1alpha1.Subnet(cidr.String()))
	if gateway := annotated(d, names.AnnotationGateway, "ADDRESS", inside(cidr)); gateway.IsValid() {
		network.WithGateway(ip(gateway))
	}
	for _, server := range annotated(d, names.AnnotationDNSServers, "ADDRESS,ADDRESS", resolverList) {
		network.WithDNSServers(ip(server))
	}
	spec := ac.InfraSpec().WithHostedClusterRef(ac.HostedClusterReference().WithName(v1alpha1.ObjectName(d.HostedCluster.Name))).WithNetworkConfig(network)
	components := ac.InfraComponents()
	if dhcp := d.dhcp(cidr); dhcp != nil {
		spec.WithInfraComponents(components.WithDHCP(dhcp))
	}
	if base := annotated(d, names.AnnotationBaseDomain, "DOMAIN", domainName); base != "" {
		spec.WithInfraComponents(components.WithDNS(ac.DNSConfig().WithBaseDomain(base)))
	}
	if finding.Worst(d.findings, finding.Provisioned) != finding.OK {
		return ProvisioningPlan{Findings: d.findings}
	}
	return ProvisioningPlan{Infra: d.infra(spec), Findings: d.findings}
}

// infra is labelled like all that we make, so that it is known again after a release or a restore. The ownerReference
// leaves blockOwnerDeletion out: HostedClusters are not ours, and where OwnerReferencesPermissionEnforcement runs it would
// need update on hostedclusters/finalizers.
func (d *derivation) infra(spec *ac.InfraSpecApplyConfiguration) *ac.InfraApplyConfiguration {
	hc := d.HostedCluster
	return ac.Infra(hc.Name, hc.Namespace).
		WithLabels(map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelHostedCluster: hc.Name, names.LabelOwnerUID: string(hc.UID)}).
		WithOwnerReferences(acmeta.OwnerReference().WithAPIVersion(hyperv1.GroupVersion.String()).WithKind("HostedCluster").WithName(hc.Name).WithUID(hc.UID).WithController(true)).
		WithSpec(spec)
}

// checkName: Services are named after the Infra.
func (d *derivation) checkName() {
	const longest = 40
	if name := d.HostedCluster.Name; len(name) > longest || len(validation.IsDNS1035Label(name)) > 0 {
		d.findings = append(d.findings, finding.Wrong(finding.Provisioned, "NameUnfit").At("metadata.name").
			Say("no Infra can have the name %s: it may have at most %d characters, small letters, digits and dashes, and begins with a letter; write an Infra with another name and spec.hostedClusterRef.name: %s, and remove annotation %s", name, longest, name, names.AnnotationInfra))
	}
}

// checkKeys: a key of ours that is misspelt says nothing, and nobody misses it.
func (d *derivation) checkKeys() {
	for _, key := range slices.Sorted(maps.Keys(d.HostedCluster.Annotations)) {
		if strings.HasPrefix(key, names.Group+"/") && !slices.Contains(names.HostedClusterAnnotations, key) {
			d.findings = append(d.findings, finding.Note(finding.Provisioned, "AnnotationUnknown").At(annotationField(key)).
				Say("annotation %s is none of ours, and says nothing; known are %s", key, strings.Join(names.HostedClusterAnnotations, ", ")))
		}
	}
}

// attachment is the NetworkAttachmentDefinition of the workers' VLAN: the one network of those NodePools that have no other.
func (d *derivation) attachment() types.NamespacedName {
	const key = names.AnnotationNetworkAttachment
	if _, set := d.HostedCluster.Annotations[key]; set {
		return annotated(d, key, "NAMESPACE/NAME", namespacedName)
	}
	found := map[string]types.NamespacedName{}
	for _, pool := range ofMachines(d.NodePools) {
		for _, n := range isolated(pool) {
			at := attachmentOf(n, d.HostedCluster)
			if len(validation.IsDNS1123Subdomain(at.Name)) > 0 {
				d.findings = append(d.findings, finding.Wrong(finding.Provisioned, "NetworkAttachmentMissing").In(poolObject(pool)).At(fieldNetworks).
					Say("NodePool %s/%s has the network %q, which can be no NetworkAttachmentDefinition's; write NAMESPACE/NAME, such as default/vlan100", pool.Namespace, pool.Name, n.Name))
				return types.NamespacedName{}
			}
			found[at.String()] = at
		}
	}
	all := slices.Sorted(maps.Keys(found))
	switch {
	case len(ofMachines(d.NodePools)) == 0:
		d.miss("NetworkAttachmentMissing", key, "NAMESPACE/NAME", nil, "no NodePool of VirtualMachines in namespace %s has spec.clusterName %s, so the NetworkAttachmentDefinition of the workers' VLAN is not known", d.HostedCluster.Namespace, d.HostedCluster.Name)
	case len(all) == 0:
		d.miss("NetworkAttachmentMissing", key, "NAMESPACE/NAME", d.isolating(), "no NodePool of this HostedCluster has attachDefaultNetwork: false with additionalNetworks, so the NetworkAttachmentDefinition of the workers' VLAN is not known")
	case len(all) == 1:
		return found[all[0]]
	default:
		d.miss("NetworkAttachmentAmbiguous", key, "NAMESPACE/NAME", nil, "NodePools with attachDefaultNetwork: false have several networks (%s), and an Infra serves one", strings.Join(all, ", "))
	}
	return types.NamespacedName{}
}

// isolating the machines that have other networks beside the pod network says which VLAN is theirs.
func (d *derivation) isolating() (all []finding.Change) {
	for _, pool := range ofMachines(d.NodePools) {
		if len(pool.Spec.Platform.Kubevirt.AdditionalNetworks) > 0 {
			all = append(all, finding.Change{Of: poolObject(pool), Values: finding.Values{fieldDefaultNetwork: false}})
		}
	}
	return all
}

// isolated are the networks of a NodePool whose machines have no card on the pod network.
func isolated(pool *hyperv1.NodePool) []hyperv1.KubevirtNetwork {
	if k := pool.Spec.Platform.Kubevirt; !ptr.Deref(k.AttachDefaultNetwork, true) {
		return k.AdditionalNetworks
	}
	return nil
}

// Attachments are the networks of a NodePool's machines beside the pod network.
func Attachments(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) (all []types.NamespacedName) {
	if k := pool.Spec.Platform.Kubevirt; k != nil {
		for _, n := range k.AdditionalNetworks {
			all = append(all, attachmentOf(n, hc))
		}
	}
	return all
}

// attachmentOf reads namespace/name. KubeVirt looks a bare name up in the namespace of the VM.
func attachmentOf(n hyperv1.KubevirtNetwork, hc *hyperv1.HostedCluster) types.NamespacedName {
	if key, err := namespacedName(n.Name); err == nil {
		return key
	}
	return types.NamespacedName{Namespace: endpoint.ControlPlaneNamespace(hc), Name: n.Name}
}

// Attachment is what the workers' network is called, as far as it is known.
func (in Provisioning) Attachment() types.NamespacedName {
	d := derivation{Provisioning: in}
	return d.attachment()
}

// AwaitsSubnet says whether a HostedCluster asks for an Infra and leaves its subnet to what there is on the VLAN.
func AwaitsSubnet(hc *hyperv1.HostedCluster) bool {
	_, written := hc.Annotations[names.AnnotationCIDR]
	cidr, _ := machineNetwork(hc)
	return hc.Annotations[names.AnnotationInfra] == names.InfraAuto && !written && !cidr.IsValid()
}

// cidr is the VLAN's subnet, by whoever knows it best: what was written for us, then what the HostedCluster says of its machines, then
// what their network says of itself, and last what those who are on it already have.
func (d *derivation) cidr(at types.NamespacedName) netip.Prefix {
	const key = names.AnnotationCIDR
	if _, set := d.HostedCluster.Annotations[key]; set {
		return annotated(d, key, "NETWORK/BITS", network)
	}
	cidr, err := machineNetwork(d.HostedCluster)
	if cidr = cmp.Or(cidr, d.ofNetwork(), d.ofInfras(at)); !cidr.IsValid() {
		machines := "spec.networking.machineNetwork"
		if err != nil {
			machines += fmt.Sprintf(" (%v)", err)
		}
		d.miss("CIDRMissing", key, "NETWORK/BITS", nil, "the VLAN's subnet is not known; tried, in this order: %s, the subnet that the workers' NetworkAttachmentDefinition says, and the one that all Infras on it have", machines)
	}
	return cidr
}

// machineNetwork is that of the workers; none where none is written. Of two families it is the one that has DHCP.
func machineNetwork(hc *hyperv1.HostedCluster) (netip.Prefix, error) {
	machines := hc.Spec.Networking.MachineNetwork
	if len(machines) == 0 {
		return netip.Prefix{}, nil
	}
	at := max(0, slices.IndexFunc(machines, func(m hyperv1.MachineNetworkEntry) bool { return m.CIDR.IP.To4() != nil }))
	return network(machines[at].CIDR.String())
}

// ofNetwork is the subnet that the workers' network says. Of another tenant's nothing is read.
func (d *derivation) ofNetwork() netip.Prefix {
	if !d.mayJoin(d.NAD, d.HostedCluster.Namespace, endpoint.ControlPlaneNamespace(d.HostedCluster)) {
		return netip.Prefix{}
	}
	config, err := nad.Parse(d.NAD.Spec.Config)
	if err != nil {
		return netip.Prefix{}
	}
	cidr, _ := network(config.Subnet().String())
	return cidr
}

// mayJoin says whether an Infra of a namespace, which has more lent to it, may be on a network.
func (d *derivation) mayJoin(n *nad.NetworkAttachmentDefinition, namespace string, lent ...string) bool {
	return n != nil && permit.Reference{From: namespace, Namespace: n.Namespace, Annotations: n.Annotations, Lent: append(lent, d.Lent...)}.Allowed()
}

// ofInfras is the subnet of the Infra that there is, else the one that all others have which may be on the VLAN.
func (d *derivation) ofInfras(at types.NamespacedName) netip.Prefix {
	if !d.mayJoin(d.NAD, d.HostedCluster.Namespace, endpoint.ControlPlaneNamespace(d.HostedCluster)) {
		return netip.Prefix{}
	}
	var all []netip.Prefix
	for _, n := range d.OnVLAN {
		cidr, err := network(string(n.Infra.Spec.NetworkConfig.CIDR))
		switch {
		case err != nil || !d.mayJoin(n.NAD, n.Infra.Namespace):
		case n.Infra.Namespace == d.HostedCluster.Namespace && n.Infra.Name == d.HostedCluster.Name && Refs(n.Infra).NAD == at:
			return cidr
		case !slices.Contains(all, cidr):
			all = append(all, cidr)
		}
	}
	if len(all) != 1 {
		return netip.Prefix{}
	}
	return all[0]
}

// dhcp is the range of its pool, where one is written. There is no DHCPv6.
func (d *derivation) dhcp(cidr netip.Prefix) *ac.DHCPConfigApplyConfiguration {
	if cidr.Addr().Is6() {
		d.findings = append(d.findings, finding.Note(finding.Provisioned, "NoDHCP").At(annotationField(names.AnnotationCIDR)).
			Say("the VLAN's subnet %s is IPv6, for which there is no DHCP: workers need addresses of their own; where the VLAN has IPv4: %s", cidr, d.command(names.AnnotationCIDR, "NETWORK/BITS")))
		return ac.DHCPConfig().WithEnabled(false)
	}
	pool := annotated(d, names.AnnotationDHCPRange, "FIRST-LAST", func(text string) (ipam.Range, error) {
		first, last, found := strings.Cut(text, "-")
		if !found {
			return ipam.Range{}, errors.New("it is no range, such as 192.168.100.10-192.168.100.99")
		}
		in := inside(cidr)
		start, err := in(strings.TrimSpace(first))
		end, endErr := in(strings.TrimSpace(last))
		if err = errors.Join(err, endErr); err == nil && end.Less(start) {
			err = fmt.Errorf("%s lies before %s", end, start)
		}
		return ipam.Range{First: start, Last: end}, err
	})
	if !pool.IsValid() {
		return nil
	}
	return ac.DHCPConfig().WithRangeStart(ipv4(pool.First)).WithRangeEnd(ipv4(pool.Last))
}

// annotated reads an annotation of the HostedCluster; the zero value when there is none. What cannot be read is a finding.
func annotated[T any](d *derivation, key, form string, parse func(string) (T, error)) (value T) {
	text, set := d.HostedCluster.Annotations[key]
	if !set {
		return value
	}
	value, err := parse(strings.TrimSpace(text))
	if err != nil {
		d.refuse(key, text, form, err)
	}
	return value
}

func (d *derivation) refuse(key, text, form string, because error) {
	wrong := finding.Wrong(finding.Provisioned, "AnnotationInvalid").At(annotationField(key))
	if key == names.AnnotationInfra {
		wrong = wrong.Change(annotation(key, form)...)
	}
	reason := strings.ReplaceAll(because.Error(), "\n", "; ")
	d.findings = append(d.findings, wrong.Say("annotation %s is %.60q: %s; write it as: %s", key, text, reason, d.command(key, form)))
}

// miss says what is missing, which annotation says it, and what to change where that is known.
func (d *derivation) miss(reason, key, form string, changes []finding.Change, what string, args ...any) {
	d.findings = append(d.findings, finding.Wrong(finding.Provisioned, reason).At(annotationField(key)).Change(changes...).
		Say(what+"; say it with: %s", append(args, d.command(key, form))...))
}

func annotationField(key string) string { return "metadata.annotations[" + key + "]" }

func annotation(key, value string) []finding.Change {
	return []finding.Change{{Values: finding.Values{"metadata.annotations": map[string]any{key: value}}}}
}

func (d *derivation) command(key, value string) string {
	return Annotate(d.HostedCluster.Namespace, d.HostedCluster.Name, key, value)
}

// Annotate is the command that annotates a HostedCluster.
func Annotate(namespace, name, key, value string) string {
	return fmt.Sprintf("kubectl -n %s annotate --overwrite hostedcluster %s %s=%s", namespace, name, key, value)
}

func domainName(text string) (v1alpha1.DNSName, error) {
	if len(validation.IsDNS1123Subdomain(text)) > 0 {
		return "", errors.New("it is no DNS name in lower case, such as example.com")
	}
	return v1alpha1.DNSName(text), nil
}

func namespacedName(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, errors.New("it names no NetworkAttachmentDefinition")
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// inside reads an address of a network; with none known, any.
func inside(cidr netip.Prefix) func(string) (netip.Addr, error) {
	return func(text string) (netip.Addr, error) {
		a, err := address(text)
		if err == nil && cidr.IsValid() && !cidr.Contains(a) {
			return netip.Addr{}, fmt.Errorf("%s lies outside %s", a, cidr)
		}
		return a, err
	}
}

func network(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("it is no network, such as 192.168.100.0/24")
	case !possible(p.Masked()):
		return netip.Prefix{}, fmt.Errorf("%s is no network that a VLAN can have, such as 192.168.100.0/24", p.Masked())
	}
	return p.Masked(), nil
}

func address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%.40q is no IP address", text)
	}
	return a.Unmap(), nil
}

func resolverList(text string) ([]netip.Addr, error) {
	const most = 8
	var all []netip.Addr
	for one := range strings.SplitSeq(text, ",") {
		a, err := address(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		if !a.IsGlobalUnicast() && !a.IsLinkLocalUnicast() {
			return nil, fmt.Errorf("%s is no address of a server", a)
		}
		all = append(all, a)
	}
	if len(all) > most {
		return nil, fmt.Errorf("it has %d addresses, and %d are possible", len(all), most)
	}
	return all, nil
}
