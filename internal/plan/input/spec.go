package input

import (
	"net/netip"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
)

// Enabled is a component's switch; unset means enabled.
func Enabled(flag *bool) bool { return ptr.Deref(flag, true) }

// SwitchedOn says of each component whether it is wanted.
func SwitchedOn(of v1alpha1.InfraComponents) map[component.Name]bool {
	on := map[component.Name]bool{}
	for _, c := range component.All {
		on[c.Name] = c.Wanted(of).Enabled
	}
	return on
}

// Instances is SwitchedOn with the second instances that are wanted.
func Instances(of v1alpha1.InfraComponents) map[component.Name]bool {
	on := SwitchedOn(of)
	for _, c := range component.All {
		if w := c.Wanted(of); w.Enabled && w.Second {
			on[c.Name.Second()] = true
		}
	}
	return on
}

// SwitchedOff are the components that are not wanted, by name.
func SwitchedOff(of v1alpha1.InfraComponents) []string {
	var off []string
	for name, on := range SwitchedOn(of) {
		if !on {
			off = append(off, string(name))
		}
	}
	slices.Sort(off)
	return off
}

// Written are the addresses in the Infra's spec.
func Written(infra *v1alpha1.Infra) map[component.Name]netip.Addr {
	all := map[component.Name]netip.Addr{}
	for _, c := range component.All {
		w := c.Wanted(infra.Spec.InfraComponents)
		if a, err := netip.ParseAddr(w.ServerIP); err == nil {
			all[c.Name] = a
		}
		if a, err := netip.ParseAddr(w.SecondIP); err == nil && w.Second {
			all[c.Name.Second()] = a
		}
	}
	return all
}

// Span parses a range; the result is not valid if one of its addresses is not.
func Span[T ~string](first, last T) ipam.Range {
	var r ipam.Range
	r.First, _ = netip.ParseAddr(string(first))
	r.Last, _ = netip.ParseAddr(string(last))
	return r
}

// Spans parses ranges as Span does; both of their addresses are included.
func Spans(ranges []v1alpha1.AddressRange) (all []ipam.Range) {
	for _, r := range ranges {
		all = append(all, Span(r.Start, r.End))
	}
	return all
}

// ClientNetworks are the networks beyond the VLAN whose clients are answered through it.
func ClientNetworks(infra *v1alpha1.Infra) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range infra.Spec.NetworkConfig.ClientCIDRs {
		if p, err := netip.ParsePrefix(string(text)); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// Refused says whether, by its status, an Infra must be changed before it gets anything. One that waits for its control plane is not refused.
func Refused(infra *v1alpha1.Infra) bool {
	s := infra.Status
	if len(s.Addresses) > 0 || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionProgressing) {
		return false
	}
	return slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
		gates := c.Type == v1alpha1.ConditionAccepted || c.Type == v1alpha1.ConditionNetworkReady || c.Type == v1alpha1.ConditionEndpointsResolved
		return gates && c.Status == metav1.ConditionFalse && c.ObservedGeneration == infra.Generation
	})
}

// Elsewhere says whether a platform's machines are in a cloud, not on a VLAN of the management cluster.
func Elsewhere(platform hyperv1.PlatformType) bool {
	return slices.Contains([]hyperv1.PlatformType{hyperv1.AWSPlatform, hyperv1.AzurePlatform, hyperv1.IBMCloudPlatform, hyperv1.PowerVSPlatform, hyperv1.OpenStackPlatform}, platform)
}
