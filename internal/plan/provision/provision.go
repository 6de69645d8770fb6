// Package provision derives an Infra from a HostedCluster that requests one by annotation.
package provision

import (
	"errors"
	"maps"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/valid"
)

// Plan is what a HostedCluster's annotation requests.
type Plan struct {
	// Infra to apply. Nil if none is requested, or while something is missing: an existing one then stays as it is.
	Infra *ac.InfraApplyConfiguration
	// Release the existing Infra, which nothing requests any more, instead of deleting it: a mistake in a Git repository must not do that.
	Release bool
	// Findings become events on the HostedCluster, which has no conditions of ours.
	Findings []finding.Finding
}

// Of plans what a HostedCluster's annotation requests. One that is being deleted is left alone: its Infra is deleted with it, by
// ownerReference.
func Of(in Input) Plan {
	if large := in.tooLarge(); len(large) > 0 {
		return Plan{Findings: large}
	}
	d := derivation{Input: in}
	asked, set := in.HostedCluster.Annotations[names.AnnotationInfra]
	switch {
	case in.HostedCluster.DeletionTimestamp != nil:
		return Plan{}
	case asked == names.InfraAuto:
		return d.plan()
	case set:
		d.refuse(names.AnnotationInfra, asked, names.InfraAuto, errors.New("the only valid value is auto; remove the annotation if you want no Infra"))
		return Plan{Findings: d.findings}
	case in.Infra != nil && metav1.IsControlledBy(in.Infra, in.HostedCluster):
		return Plan{Release: true, Findings: []finding.Finding{d.released()}}
	}
	return Plan{}
}

// Made says that the Infra of a plan was created.
func (p Plan) Made() finding.Finding {
	network := p.Infra.Spec.NetworkConfig
	return finding.Warn(finding.Provisioned, "InfraCreated").Say("Infra %s/%s is created for subnet %s of NetworkAttachmentDefinition %s/%s",
		*p.Infra.Namespace, *p.Infra.Name, *network.CIDR, *network.NetworkAttachmentNamespace, *network.NetworkAttachmentDefinition)
}

func (d *derivation) released() finding.Finding {
	active := int32(0)
	if leases := d.Infra.Status.Leases; leases != nil {
		active = leases.Active
	}
	hc := d.HostedCluster
	return finding.Refuse(finding.Provisioned, "InfraOrphaned").
		Say("annotation %s is gone: Infra %s/%s is kept with its %d active leases, and is no longer updated or deleted with this HostedCluster; to manage it again, run: %s; to remove it: kubectl -n %s delete infra %s",
			names.AnnotationInfra, hc.Namespace, hc.Name, active, d.command(names.AnnotationInfra, names.InfraAuto), hc.Namespace, hc.Name)
}

func (d *derivation) plan() Plan {
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
		network.WithGateway(desired.IP(gateway))
	}
	for _, server := range annotated(d, names.AnnotationDNSServers, "ADDRESS,ADDRESS", resolverList) {
		network.WithDNSServers(desired.IP(server))
	}
	spec := ac.InfraSpec().WithHostedClusterRef(ac.HostedClusterReference().WithName(v1alpha1.ObjectName(d.HostedCluster.Name))).WithNetworkConfig(network)
	components := ac.InfraComponents()
	if dhcp := d.dhcp(cidr); dhcp != nil {
		spec.WithInfraComponents(components.WithDHCP(dhcp))
	}
	if base := annotated(d, names.AnnotationBaseDomain, "DOMAIN", domainName); base != "" {
		spec.WithInfraComponents(components.WithDNS(ac.DNSConfig().WithBaseDomain(base)))
	}
	if finding.Worst(d.findings, finding.Provisioned) != finding.Warning {
		return Plan{Findings: d.findings}
	}
	return Plan{Infra: d.infra(spec), Findings: d.findings}
}

// infra has our labels, so that it is recognised after a release or a restore. Its ownerReference omits blockOwnerDeletion, for which
// OwnerReferencesPermissionEnforcement would require update on hostedclusters/finalizers, and HostedClusters are not ours.
func (d *derivation) infra(spec *ac.InfraSpecApplyConfiguration) *ac.InfraApplyConfiguration {
	hc := d.HostedCluster
	return ac.Infra(hc.Name, hc.Namespace).
		WithLabels(map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelHostedCluster: hc.Name, names.LabelOwnerUID: string(hc.UID)}).
		WithOwnerReferences(acmeta.OwnerReference().WithAPIVersion(hyperv1.GroupVersion.String()).WithKind("HostedCluster").WithName(hc.Name).WithUID(hc.UID).WithController(true)).
		WithSpec(spec)
}

// checkName: the Infra's name must be a Service's, because Services are named after it.
func (d *derivation) checkName() {
	if name := d.HostedCluster.Name; len(name) > valid.LongestInfraName || len(validation.IsDNS1035Label(name)) > 0 {
		d.findings = append(d.findings, finding.Refuse(finding.Provisioned, "NameInvalid").At("metadata.name").
			Say("no Infra can have the name %s: it may have at most %d characters, small letters, digits and dashes, and begins with a letter; write an Infra with another name and spec.hostedClusterRef.name: %s, and remove annotation %s", name, valid.LongestInfraName, name, names.AnnotationInfra))
	}
}

// checkKeys: nobody notices otherwise that a misspelt key of ours has no effect.
func (d *derivation) checkKeys() {
	for _, key := range slices.Sorted(maps.Keys(d.HostedCluster.Annotations)) {
		if strings.HasPrefix(key, names.Group+"/") && !slices.Contains(names.HostedClusterAnnotations, key) {
			d.findings = append(d.findings, finding.Warn(finding.Provisioned, "AnnotationUnknown").At(annotationField(key)).
				Say("annotation %s is unknown and has no effect; the known ones are %s", key, strings.Join(names.HostedClusterAnnotations, ", ")))
		}
	}
}

// AwaitsSubnet says whether a HostedCluster requests an Infra, and its subnet depends on the other Infras on the VLAN.
func AwaitsSubnet(hc *hyperv1.HostedCluster) bool {
	_, written := hc.Annotations[names.AnnotationCIDR]
	cidr, _ := machineNetwork(hc)
	return hc.Annotations[names.AnnotationInfra] == names.InfraAuto && !written && !cidr.IsValid()
}
