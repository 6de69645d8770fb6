package cmd

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
)

// The full sample says in its first lines which fields it omits.
func TestTheFullSampleHasEveryField(t *testing.T) {
	g := NewWithT(t)
	sample := read[v1alpha1.Infra](t, "../config/samples/infra-full.yaml")
	g.Expect(leftOut("", reflect.ValueOf(sample.Spec))).To(ConsistOf(
		".infraComponents.dhcp.enabled", ".infraComponents.dns.enabled", ".infraComponents.proxy.enabled",
		".infraComponents.dns.clusterName", ".infraComponents.dns.baseDomain", ".infraComponents.proxy.controlPlaneNamespace",
		".infraComponents.dhcp.image", ".infraComponents.dns.image", ".infraComponents.proxy.proxyImage", ".infraComponents.proxy.managerImage",
		".infraComponents.dhcp.reservations.clientID", ".extraEndpoints.target.addresses",
	))
}

func TestTheFullSampleOfABridgeHasEveryField(t *testing.T) {
	sample := read[dpuv1.DPUHCPBridge](t, "../config/samples/dpuhcpbridge-full.yaml")
	NewWithT(t).Expect(leftOut("", reflect.ValueOf(sample.Spec))).To(BeEmpty())
}

func read[T any](t *testing.T, file string) (into T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return into
}

// ours are the packages of our API.
var ours = []string{reflect.TypeFor[v1alpha1.Infra]().PkgPath(), reflect.TypeFor[dpuv1.DPUHCPBridge]().PkgPath()}

// leftOut are the fields of our own types that a value does not set; of a list, those of its first entry.
func leftOut(path string, v reflect.Value) []string {
	switch {
	case v.IsZero():
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return leftOut(path, v.Elem())
	case v.Kind() == reflect.Slice:
		return leftOut(path, v.Index(0))
	case v.Kind() != reflect.Struct || !slices.Contains(ours, v.Type().PkgPath()):
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
