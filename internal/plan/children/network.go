package children

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// attachment is how the pod of one component joins the VLAN: through a derived network of its own with its addresses. On OVN-Kubernetes,
// where the pod's annotation has the addresses, it is the source itself, or a copy that all components share.
func attachment(in apps.Published, child string, addresses ...netip.Addr) (v1alpha1.Attachment, []runtime.ApplyConfiguration) {
	a := v1alpha1.Attachment{MACAddress: v1alpha1.MACAddress(names.MAC(in.Infra.Namespace, in.Infra.Name, addresses[0]))}
	if in.VLAN.Direct {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(in.NAD.Name)
		a.NetworkAttachmentNamespace = v1alpha1.ObjectName(in.NAD.Namespace)
		return a, nil
	}
	a.NetworkAttachmentNamespace = v1alpha1.ObjectName(in.Infra.Namespace)
	if shares(in, child) {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(names.SharedNetwork(in.Infra.Name))
		return a, nil
	}
	a.NetworkAttachmentDefinition = v1alpha1.ObjectName(child)
	return a, []runtime.ApplyConfiguration{derived(in, child, derivedConfig(in, child, addresses), addresses)}
}

// attachments is attachment with the network of a second instance's pod, which has one of its own where the first has
// (workload.InstanceAttachment). The first one's pod also has the captured addresses.
func attachments(in apps.Published, of component.Name, child string, captured ...netip.Addr) (v1alpha1.Attachment, []runtime.ApplyConfiguration) {
	a, objects := attachment(in, child, append([]netip.Addr{in.Address(of)}, captured...)...)
	if second := in.Address(of.Second()); second.IsValid() && len(objects) > 0 && !in.VLAN.Config.IsOVN() {
		name, addresses := names.Numbered(child, 1), []netip.Addr{second}
		objects = append(objects, derived(in, name, derivedConfig(in, name, addresses), addresses))
	}
	return a, objects
}

// further are the addresses of a component's instances beside the first.
func further[T ~string](in apps.Published, c component.Name, field func(netip.Addr) T) (all []T) {
	for _, at := range in.Addresses(c)[1:] {
		all = append(all, field(at))
	}
	return all
}

func derived(in apps.Published, name string, config nad.Config, addresses []netip.Addr) *nad.ApplyConfiguration {
	n := nad.Apply(in.Infra.Namespace, name, config)
	n.WithLabels(desired.Labels(in.Infra)).WithAnnotations(derivedAnnotations(in, addresses)).WithOwnerReferences(owner(in))
	return n
}

// shares says whether a component is on the shared copy. One that an older manager put on its own copy stays there until it is recreated:
// another network would replace its pod, and a running pod loses a network that is renamed.
func shares(in apps.Published, child string) bool {
	return in.VLAN.Config.IsOVN() && !in.VLAN.Direct && in.Children.Network(child) != child
}

// shared is the copy that components share; nil if none does.
func shared(in apps.Published) *nad.ApplyConfiguration {
	for component, on := range input.SwitchedOn(in.Infra.Spec.InfraComponents) {
		if on && shares(in, names.Child(in.Infra.Name, string(component))) {
			name := names.SharedNetwork(in.Infra.Name)
			return derived(in, name, in.VLAN.Config.CopyForOVN(nad.NetworkOnOVN(in.Infra.Namespace, in.Infra.Name), in.Infra.Namespace, name), nil)
		}
	}
	return nil
}

func derivedConfig(in apps.Published, child string, addresses []netip.Addr) nad.Config {
	if in.VLAN.Config.IsOVN() { // the name is an older manager's
		return in.VLAN.Config.CopyForOVN(fmt.Sprintf("%s.%s", in.Infra.Namespace, in.Infra.Name), in.Infra.Namespace, child)
	}
	s := nad.Static{
		Name: child, Gateway: in.Gateway, Routes: input.ClientNetworks(in.Infra), Anywhere: in.VLAN.Anywhere, PreventForwarding: in.VLAN.Tuned,
		Addresses: []netip.Prefix{netip.PrefixFrom(addresses[0], in.CIDR.Bits())},
	}
	for _, published := range addresses[1:] {
		s.Addresses = append(s.Addresses, netip.PrefixFrom(published, published.BitLen()))
	}
	return in.VLAN.Config.WithStatic(s)
}

// derivedAnnotations are the source's resource name, by which pods are scheduled, and digests of what the network was derived from. By
// these, workload tells a change by a user or the cluster from one by a newer manager. No other annotation of the source is copied:
// OVN-Kubernetes writes the network's ID and name (k8s.ovn.org/, networkmanager/nad_controller.go) on ours too, and would overwrite
// copied ones; a GitOps tool prunes objects with its mark.
func derivedAnnotations(in apps.Published, addresses []netip.Addr) map[string]string {
	all := map[string]string{
		names.AnnotationSource:       in.NAD.Namespace + "/" + in.NAD.Name,
		names.AnnotationInputs:       desired.Digest([]any{in.VLAN.Config.Carrier(), in.CIDR, in.Gateway, addresses, input.ClientNetworks(in.Infra)}),
		names.AnnotationFormerInputs: formerInputs(in, addresses, true) + "," + formerInputs(in, addresses, false),
	}
	if resource := in.NAD.Annotations[nad.ResourceName]; resource != "" {
		all[nad.ResourceName] = resource
	}
	return all
}

// formerInputs is the digest that managers before v0.2 wrote for the same inputs, tuned or not, so that their pods are not replaced.
func formerInputs(in apps.Published, addresses []netip.Addr, tuned bool) string {
	return desired.Digest([]any{in.NAD.Spec.Config, in.CIDR, in.Gateway, addresses, input.ClientNetworks(in.Infra), tuned})
}
