package workload

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// InstanceAttachment is how the pod of one instance joins the VLAN: by the network that the server names or, if the configuration of that
// has the first instance's address, by a network of its own.
func InstanceAttachment(a v1alpha1.Attachment, first *nad.NetworkAttachmentDefinition, instance int) v1alpha1.Attachment {
	if instance == 0 {
		return a
	}
	a.MACAddress = "" // no two have one
	if first == nil {
		return a
	}
	if config, err := nad.Parse(first.Spec.Config); err == nil && config.BakesAddresses() {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(names.Numbered(string(a.NetworkAttachmentDefinition), instance))
	}
	return a
}
