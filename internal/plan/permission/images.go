package permission

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// WrittenImages are the image fields of an Infra or a child, by their path below spec; empty if the field is not set.
func WrittenImages(object any) map[string]string {
	infra, is := object.(*v1alpha1.Infra)
	if !is {
		return ofServer(object)
	}
	all := map[string]string{}
	for _, c := range component.All {
		for field, image := range c.Wanted(infra.Spec.InfraComponents).Images {
			all[fmt.Sprintf("infraComponents.%s.%s", c.Name, field)] = image
		}
	}
	return all
}

func ofServer(object any) map[string]string {
	if c, is := component.Of(object); is {
		return c.Written(object.(component.Server)).Images
	}
	return nil
}

// ImageOverrides refuses image fields: an editor of a namespace must not choose code that runs on the VLAN.
func ImageOverrides(s input.Settings, images map[string]string) []finding.Finding {
	var all []finding.Finding
	for _, field := range slices.Sorted(maps.Keys(images)) {
		if images[field] != "" && !s.AllowImageOverride {
			all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "ImageOverrideNotAllowed").At("spec."+field).Set(finding.Values{"spec." + field: nil}).
				Say("%s is set; remove it, or run the operator with --allow-image-override", field))
		}
	}
	return all
}
