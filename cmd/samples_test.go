package cmd

import (
	"os"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// What the full sample leaves out is what its first lines say.
func TestTheFullSampleHasEveryField(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../config/samples/infra-full.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var sample v1alpha1.Infra
	g.Expect(yaml.UnmarshalStrict(text, &sample)).To(Succeed())
	g.Expect(leftOut("", reflect.ValueOf(sample.Spec))).To(ConsistOf(
		".infraComponents.dhcp.enabled", ".infraComponents.dns.enabled", ".infraComponents.proxy.enabled",
		".infraComponents.dns.clusterName", ".infraComponents.dns.baseDomain", ".infraComponents.proxy.controlPlaneNamespace",
		".infraComponents.dhcp.image", ".infraComponents.dns.image", ".infraComponents.proxy.proxyImage", ".infraComponents.proxy.managerImage",
		".infraComponents.dhcp.reservations.clientID", ".extraEndpoints.target.addresses",
	))
}

// leftOut are the fields of our own types that a value does not set; of a list, in its first entry.
func leftOut(path string, v reflect.Value) []string {
	switch {
	case v.IsZero():
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return leftOut(path, v.Elem())
	case v.Kind() == reflect.Slice:
		return leftOut(path, v.Index(0))
	case v.Kind() != reflect.Struct || v.Type().PkgPath() != reflect.TypeFor[v1alpha1.Infra]().PkgPath():
		return nil
	}
	var all []string
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if options == "inline" {
			all = append(all, leftOut(path, v.Field(i))...)
		} else {
			all = append(all, leftOut(path+"."+name, v.Field(i))...)
		}
	}
	return all
}
