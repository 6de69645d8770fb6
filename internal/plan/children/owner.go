package children

import (
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/apps"
)

func owner(in apps.Published) *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("Infra").WithName(in.Infra.Name).WithUID(in.Infra.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}
