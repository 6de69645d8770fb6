package preflight

import (
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
)

// anew: what findings change of a HostedCluster's spec, outside its configuration, is immutable (hostedcluster_types.go and kubevirt.go of
// HyperShift's API) or, as for credentials, would not move existing machines. An Infra's network may only widen.
func anew(f finding.Finding) bool {
	return slices.ContainsFunc(f.Changes, func(c finding.Change) bool {
		_, moved := c.Values[ipam.FieldCIDR]
		return moved || f.Of.Kind == "HostedCluster" && strings.HasPrefix(f.Field, "spec.") && !strings.HasPrefix(f.Field, "spec.configuration.")
	})
}
