package check

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
)

// Misnamed reports a domain that is no DNS name, because the children and every record have it.
func Misnamed(in apps.Published) []finding.Finding {
	refuse := finding.Refuse(v1alpha1.ConditionEndpointsResolved, "InvalidDomain")
	cp := in.ControlPlane()
	if cp.HostedCluster != nil && cp.Base() == "" {
		return []finding.Finding{refuse.In(endpoint.Object(cp.HostedCluster)).At("spec.dns.baseDomain").
			Say("the base domain of HostedCluster %s/%s is not known; these were tried in order: %s; set it with: %s", cp.HostedCluster.Namespace, cp.HostedCluster.Name, endpoint.BaseSources, sayBase(in))}
	}
	if validation.IsDNS1123Subdomain(in.Domain()) != nil {
		return []finding.Finding{refuse.At("spec.infraComponents.dns").Say("the hosted cluster's domain is %q, which is not a DNS name in lower case; set infraComponents.dns.clusterName and dns.baseDomain, e.g. c1 and example.com", in.Domain())}
	}
	return nil
}

// sayBase is the command that sets the base domain: on the HostedCluster if the Infra is derived from it, or else in the Infra.
func sayBase(in apps.Published) string {
	const example = "example.com"
	if metav1.IsControlledBy(in.Infra, in.HostedCluster) {
		return finding.Annotate(in.HostedCluster.Namespace, in.HostedCluster.Name, names.AnnotationBaseDomain, example)
	}
	return fmt.Sprintf(`kubectl -n %s patch infra %s --type merge -p '{"spec":{"infraComponents":{"dns":{"baseDomain":%q}}}}'`, in.Infra.Namespace, in.Infra.Name, example)
}
