package check

import (
	"fmt"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// origin is where the configuration of a network is written: in the NetworkAttachmentDefinition, or in the object that it is rendered from,
// which told then describes.
type origin struct {
	object      finding.Object
	field, told string
}

func originOf(n *nad.NetworkAttachmentDefinition) origin {
	by, rendered := n.Renderer()
	switch of := (finding.Object{APIVersion: "k8s.ovn.org/v1", Kind: by.Kind, Name: by.Name}); {
	case !rendered:
		return origin{object: subject.NAD(n), field: "spec.config"}
	case by.Kind == nad.OperatorNetwork:
		of.APIVersion = "operator.openshift.io/v1"
		return origin{of, "spec.additionalNetworks", fmt.Sprintf("; OpenShift's network operator manages it and reverts changes: change entry %s in spec.additionalNetworks of Network.operator.openshift.io %s, which accepts any configuration as rawCNIConfig if its type is Raw", n.Name, by.Name)}
	case by.Kind == "UserDefinedNetwork":
		of.Namespace = n.Namespace
		fallthrough
	default:
		return origin{of, "spec", fmt.Sprintf("; its controller made it from %s %s, whose spec is immutable: recreate that", by.Kind, by.Name)}
	}
}

// mended begins a finding with a change to the right configuration; without one if it is rendered, because its source has another form.
func (o origin) mended(b finding.Builder, config nad.Config) finding.Builder {
	b = b.In(o.object).At(o.field)
	if o.told != "" {
		return b
	}
	return b.Set(finding.Values{o.field: config.String()})
}

func (o origin) userDefined() bool { return o.object.APIVersion == "k8s.ovn.org/v1" }
