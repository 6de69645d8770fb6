package preflight

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	rangeStart = "spec.infraComponents.dhcp.rangeStart"
	rangeEnd   = "spec.infraComponents.dhcp.rangeEnd"
)

// annotations maps fields of an Infra that is made from a HostedCluster to the annotations that set them.
var annotations = map[string]string{
	"spec.networkConfig.networkAttachmentDefinition": names.AnnotationNetworkAttachment,
	"spec.networkConfig.cidr":                        names.AnnotationCIDR,
	"spec.networkConfig.gateway":                     names.AnnotationGateway,
	"spec.networkConfig.dnsServers":                  names.AnnotationDNSServers,
	"spec.infraComponents.dns.baseDomain":            names.AnnotationBaseDomain,
	rangeStart:                                       names.AnnotationDHCPRange,
	rangeEnd:                                         names.AnnotationDHCPRange,
}

// atSource points findings of an Infra that is made from a HostedCluster at the HostedCluster: before the Infra exists there is nothing to
// patch, and afterwards a patch would be FieldSetByHand. Findings of fields that are not derived stay at the Infra.
func atSource(infra *v1alpha1.Infra, findings []finding.Finding) []finding.Finding {
	owner := metav1.GetControllerOf(infra)
	if owner == nil || owner.Kind != "HostedCluster" {
		return findings
	}
	hc := finding.Object{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: infra.Namespace, Name: owner.Name}
	for i := range findings {
		f := &findings[i]
		if key := annotations[f.Field]; key != "" && f.Of.Kind == "Infra" {
			f.Of, f.Field = hc, "metadata.annotations["+key+"]"
		}
		for j, c := range f.Changes {
			if said := annotated(c.Values); said != nil && c.Of.Kind == "Infra" {
				f.Changes[j] = finding.Change{Of: hc, Values: finding.Values{"metadata.annotations": said}}
			}
		}
	}
	return findings
}

// annotated are the values as annotations; nil when a field among them has none.
func annotated(values finding.Values) map[string]any {
	said := map[string]any{}
	for field, value := range values {
		key := annotations[field]
		if _, text := value.(string); key == "" || !text && value != nil {
			return nil
		}
		said[key] = value
	}
	if start, end := values[rangeStart], values[rangeEnd]; start != nil && end != nil {
		said[names.AnnotationDHCPRange] = fmt.Sprintf("%s-%s", start, end)
	}
	return said
}
