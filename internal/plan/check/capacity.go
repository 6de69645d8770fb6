package check

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// capacity: the address of a replaced worker is not free at once, so a pool needs two for each worker, and those of the surge
// (operator-rules.md#pool-size).
func capacity(in apps.Published) []finding.Finding {
	var replicas, surge int64
	for _, pool := range in.NodePools {
		if leasesTo(in, pool) {
			n := mostOf(pool)
			replicas, surge = replicas+n, surge+surgeOf(pool, n)
		}
	}
	has, needs := int64(in.Assigned.Size()), 2*replicas+surge
	if !in.Assigned.Pool.IsValid() || has >= needs {
		return nil
	}
	return []finding.Finding{finding.Warn(v1alpha1.ConditionAccepted, "PoolTooSmall").At(subject.FieldCIDR).Change(wholePool(in, needs)...).
		Say("DHCP has %d addresses to lease and may need %d: the NodePools have %d replicas and a surge of %d (2 × %d + %d), because the address of a replaced worker is not free at once; widen networkConfig.cidr or the range from dhcp.rangeStart to rangeEnd, or exclude fewer addresses",
			has, needs, replicas, surge, replicas, surge)}
}

// wholePool is a change to all that could be leased, if that is enough.
func wholePool(in apps.Published, needs int64) []finding.Change {
	pool, enough := in.WholePool(needs)
	if !enough {
		return nil
	}
	return []finding.Change{{Values: finding.Values{ipam.FieldStart: pool.First.String(), ipam.FieldEnd: pool.Last.String()}}}
}

// leasesTo says whether a NodePool's machines are on this VLAN; outside KubeVirt that is not known, so they count.
func leasesTo(in apps.Published, pool hyperv1.NodePool) bool {
	k := pool.Spec.Platform.Kubevirt
	return k == nil || len(in.Attachments(k)) > 0
}

// mostOf is the most machines that a NodePool may have.
func mostOf(pool hyperv1.NodePool) int64 {
	if pool.Spec.AutoScaling != nil {
		return int64(pool.Spec.AutoScaling.Max)
	}
	return int64(ptr.Deref(pool.Spec.Replicas, 0))
}

// surgeOf is how many machines a rolling upgrade adds: 1 if it is not set (hypershift, nodepool_types.go, RollingUpdate).
func surgeOf(pool hyperv1.NodePool, replicas int64) int64 {
	replace := ptr.Deref(pool.Spec.Management.Replace, hyperv1.ReplaceUpgrade{})
	if pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace || replace.Strategy == hyperv1.UpgradeStrategyOnDelete {
		return 0
	}
	written := ptr.Deref(replace.RollingUpdate, hyperv1.RollingUpdate{}).MaxSurge
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(written, intstr.FromInt32(1)), int(replicas), true)
	if err != nil {
		return 1 // HyperShift refuses it
	}
	return int64(n)
}
