package render

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// openShiftDNS configures the DNS of OpenShift's pods, by its one object named default.
var openShiftDNS = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "DNS"}

// Forwarding is what has the management cluster's DNS ask our DNSServers for their clusters' names.
type Forwarding struct {
	// Patch is a merge patch of dns.operator.openshift.io/default.
	Patch []byte
	// Blind: that object is not among the files. A merge patch replaces lists, so servers that it has would be lost.
	Blind bool
}

// OpenShiftDNS is the patch for the DNSServers of the files. Servers that the object has beside ours stay.
func (o Objects) OpenShiftDNS() (Forwarding, error) {
	var ours []any
	for _, s := range pick[v1alpha1.DNSServer](o, "") {
		if s.Status.ServiceClusterIP == "" {
			return Forwarding{}, fmt.Errorf("DNSServer %s/%s has no status.serviceClusterIP yet: nothing can be forwarded to it", s.Namespace, s.Name)
		}
		ours = append(ours, forwarded(s))
	}
	if len(ours) == 0 {
		return Forwarding{}, errors.New("the files hold no DNSServer; give what `kubectl get dnsservers -A -o yaml` prints")
	}
	present := find[unstructured.Unstructured](o, named("", "default"))
	patch, err := yaml.Marshal(map[string]any{
		"apiVersion": openShiftDNS.GroupVersion().String(), "kind": openShiftDNS.Kind, "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"servers": append(others(present), ours...)},
	})
	return Forwarding{Patch: patch, Blind: present == nil}, err
}

// forwarded is one entry of spec.servers: the cluster's domain, and names of the pod view that lie outside it.
func forwarded(s *v1alpha1.DNSServer) map[string]any {
	zones := []string{string(s.Spec.HostedClusterDomain)}
	for _, e := range s.Spec.InternalEntries {
		name := strings.TrimPrefix(string(e.Hostname), "*.")
		if !slices.ContainsFunc(zones, func(zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }) {
			zones = append(zones, name)
		}
	}
	return map[string]any{
		"name": serverName(s), "zones": zones, "forwardPlugin": map[string]any{"upstreams": []string{s.Status.ServiceClusterIP}},
	}
}

// ourServers begin so.
const ourServers = "oooi-"

// serverName is a service name of RFC 6335 §5.1, as the field wants it: at most 15 characters.
func serverName(s *v1alpha1.DNSServer) string {
	sum := sha256.Sum256([]byte(s.Namespace + "/" + s.Name))
	return fmt.Sprintf("%s%x", ourServers, sum[:5])
}

// others are the servers that the object has beside ours.
func others(present *unstructured.Unstructured) []any {
	if present == nil {
		return nil
	}
	servers, _, _ := unstructured.NestedSlice(present.Object, "spec", "servers") // of another type: there are none
	return slices.DeleteFunc(servers, func(one any) bool {
		server, _ := one.(map[string]any)
		name, _ := server["name"].(string)
		return strings.HasPrefix(name, ourServers)
	})
}
