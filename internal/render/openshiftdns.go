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
	// Last: no DNSServer is among the files, and what the object has of ours goes.
	Last bool
}

// OpenShiftDNS is the patch for the DNSServers of the files. Servers that the object has beside ours stay.
func (o Objects) OpenShiftDNS() (Forwarding, error) {
	present := find[unstructured.Unstructured](o, named("", "default"))
	servers := others(present)
	theirs, claimed := len(servers), claimedBy(servers)
	for _, s := range pick[v1alpha1.DNSServer](o, "") {
		if s.Status.ServiceClusterIP == "" {
			return Forwarding{}, fmt.Errorf("DNSServer %s/%s has no status.serviceClusterIP yet: nothing can be forwarded to it", s.Namespace, s.Name)
		}
		zones := zonesOf(s)
		if err := claimed.take(s, zones); err != nil {
			return Forwarding{}, err
		}
		servers = append(servers, map[string]any{
			"name": serverName(s), "zones": zones, "forwardPlugin": map[string]any{"upstreams": []string{s.Status.ServiceClusterIP}},
		})
	}
	last := len(servers) == theirs
	if last && !forwardsToUs(present) {
		return Forwarding{}, errors.New("the files hold no DNSServer; give what `kubectl get dnsservers -A -o yaml` prints")
	}
	patch, err := yaml.Marshal(map[string]any{
		"apiVersion": openShiftDNS.GroupVersion().String(), "kind": openShiftDNS.Kind, "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"servers": servers},
	})
	return Forwarding{Patch: patch, Blind: present == nil, Last: last}, err
}

// zonesOf a DNSServer: the cluster's domain, and names of the pod view that lie outside it.
func zonesOf(s *v1alpha1.DNSServer) []string {
	zones := []string{string(s.Spec.HostedClusterDomain)}
	for _, e := range s.Spec.InternalEntries {
		name := strings.TrimPrefix(string(e.Hostname), "*.")
		if !slices.ContainsFunc(zones, func(zone string) bool { return under(name, zone) }) {
			zones = append(zones, name)
		}
	}
	return zones
}

func under(name, zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }

// clusterDomain is that of every OpenShift; its DNS operator refuses to forward it.
const clusterDomain = "cluster.local"

// claims say whose each zone is: CoreDNS starts with none that two servers have.
type claims map[string]string

func claimedBy(servers []any) claims {
	all := claims{}
	for _, one := range servers {
		server, _ := one.(map[string]any)
		zones, _, _ := unstructured.NestedStringSlice(server, "zones") // of another type: there are none
		for _, zone := range zones {
			all[strings.ToLower(strings.TrimSuffix(zone, "."))] = fmt.Sprintf("server %v of dns.operator.openshift.io/default", server["name"])
		}
	}
	return all
}

// take refuses a zone that somebody has, or that is the management cluster's own.
func (c claims) take(s *v1alpha1.DNSServer, zones []string) error {
	us := "DNSServer " + s.Namespace + "/" + s.Name
	for _, zone := range zones {
		if by, taken := c[zone]; taken {
			return fmt.Errorf("zone %s is of both %s and %s, and can be forwarded to one: remove it from the other, or leave that out", zone, by, us)
		}
		for _, denied := range append(s.Spec.DeniedZones[:len(s.Spec.DeniedZones):len(s.Spec.DeniedZones)], clusterDomain) {
			if own := string(denied); under(zone, own) || under(own, zone) {
				return fmt.Errorf("zone %s of %s holds or lies in %s, which is the management cluster's own: forwarded, its pods would not find each other; give the hosted cluster another domain", zone, us, own)
			}
		}
		c[zone] = us
	}
	return nil
}

// ourServers begin so.
const ourServers = "oooi-"

// serverName is a service name of RFC 6335 §5.1, as the field wants it: at most 15 characters.
func serverName(s *v1alpha1.DNSServer) string {
	sum := sha256.Sum256([]byte(s.Namespace + "/" + s.Name))
	return fmt.Sprintf("%s%x", ourServers, sum[:5])
}

// forwardsToUs says whether the object has servers of ours.
func forwardsToUs(present *unstructured.Unstructured) bool {
	if present == nil {
		return false
	}
	all, _, _ := unstructured.NestedSlice(present.Object, "spec", "servers") // of another type: there are none
	return len(all) > len(others(present))
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
