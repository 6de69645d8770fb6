package permission

import (
	"maps"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// WrittenImages are the fields of an Infra or a child that choose what runs, below its spec; empty where nothing is written.
func WrittenImages(object any) map[string]string {
	switch o := object.(type) {
	case *v1alpha1.Infra:
		c := o.Spec.InfraComponents
		return map[string]string{
			"infraComponents.dhcp.image": c.DHCP.Image, "infraComponents.dns.image": c.DNS.Image,
			"infraComponents.proxy.proxyImage": c.Proxy.ProxyImage, "infraComponents.proxy.managerImage": c.Proxy.ManagerImage,
		}
	case *v1alpha1.DHCPServer:
		return map[string]string{"image": o.Spec.Image}
	case *v1alpha1.DNSServer:
		return map[string]string{"image": o.Spec.Image}
	case *v1alpha1.ProxyServer:
		return map[string]string{"proxyImage": o.Spec.ProxyImage, "managerImage": o.Spec.ManagerImage}
	}
	return nil
}

// ImageOverrides are refused: an editor of a namespace must not choose code that runs on the VLAN.
func ImageOverrides(s input.Settings, images map[string]string) []finding.Finding {
	var all []finding.Finding
	for _, field := range slices.Sorted(maps.Keys(images)) {
		if images[field] != "" && !s.AllowImageOverride {
			all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "ImageOverrideNotAllowed").At("spec."+field).Set(finding.Values{"spec." + field: nil}).
				Say("%s is set; remove it, or have the operator run with --allow-image-override", field))
		}
	}
	return all
}
