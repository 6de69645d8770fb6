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
	"github.com/cldmnky/oooi/internal/endpoint"
)

// openShiftDNS configures the DNS of OpenShift's pods; its one object is named default.
var openShiftDNS = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "DNS"}

// Forwarding makes the management cluster's DNS ask our DNSServers for the names of their hosted clusters.
type Forwarding struct {
	// Patch is a merge patch of dns.operator.openshift.io/default.
	Patch []byte
	// Notes say what it does not forward.
	Notes []string
}

// OpenShiftDNS is the patch for the DNSServers of the files. It repeats the servers that the object has besides ours, because a merge patch
// replaces lists.
func (o Objects) OpenShiftDNS() (Forwarding, error) {
	present := find[unstructured.Unstructured](o, named("", "default"))
	if present == nil {
		return Forwarding{}, errors.New("the files hold no DNS default of operator.openshift.io, and the patch would take away what servers it has; add what `kubectl get dns.operator.openshift.io default -o yaml` prints")
	}
	servers, ours := serversOf(present)
	theirs, claimed := len(servers), claimedBy(servers)
	var f Forwarding
	for _, s := range pick[v1alpha1.DNSServer](o, "") {
		name, zones, at := serverName(s), zonesOf(s), s.Status.ServiceClusterIP
		if err := claimed.take(s, zones); err != nil {
			return Forwarding{}, err
		}
		server := []any{map[string]any{"name": name, "zones": zones, "forwardPlugin": map[string]any{"upstreams": []string{at}}}}
		if at == "" {
			f.Notes = append(f.Notes, fmt.Sprintf("DNSServer %s/%s has no status.serviceClusterIP yet: the patch changes nothing for it; print it again when there is one", s.Namespace, s.Name))
			server = ours[name]
		}
		servers = append(servers, server...)
	}
	switch {
	case len(servers) > theirs:
	case len(f.Notes) > 0:
		return Forwarding{}, errors.New(strings.Join(f.Notes, "; "))
	case len(ours) == 0:
		return Forwarding{}, errors.New("the files hold no DNSServer; give what `kubectl get dnsservers -A -o yaml` prints")
	default:
		f.Notes = []string{"the files hold no DNSServer: nothing is forwarded to us any more"}
	}
	var err error
	f.Patch, err = yaml.Marshal(map[string]any{
		"apiVersion": openShiftDNS.GroupVersion().String(), "kind": openShiftDNS.Kind, "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"servers": servers},
	})
	return f, err
}

// zonesOf a DNSServer are the cluster's domain, and names of the pod view outside it.
func zonesOf(s *v1alpha1.DNSServer) []string {
	zones := []string{string(s.Spec.HostedClusterDomain)}
	for _, e := range s.Spec.InternalEntries {
		name := strings.TrimPrefix(string(e.Hostname), "*.")
		if !slices.ContainsFunc(zones, func(zone string) bool { return endpoint.Below(name, zone) }) {
			zones = append(zones, name)
		}
	}
	return zones
}

// clusterDomain is every OpenShift's own; its DNS operator refuses to forward it.
const clusterDomain = "cluster.local"

// claims maps each zone to its server: CoreDNS does not start if two servers have one zone.
type claims map[string]string

func claimedBy(servers []any) claims {
	all := claims{}
	for _, one := range servers {
		server, _ := one.(map[string]any)
		zones, _, _ := unstructured.NestedStringSlice(server, "zones") // none, if it has another type
		for _, zone := range zones {
			all[strings.ToLower(strings.TrimSuffix(zone, "."))] = fmt.Sprintf("server %v of dns.operator.openshift.io/default", server["name"])
		}
	}
	return all
}

// take refuses a zone that another server has, or that is the management cluster's own.
func (c claims) take(s *v1alpha1.DNSServer, zones []string) error {
	us := "DNSServer " + s.Namespace + "/" + s.Name
	for _, zone := range zones {
		if by, taken := c[zone]; taken {
			return fmt.Errorf("zone %s is of both %s and %s, and can be forwarded to one: remove it from the other, or leave that out", zone, by, us)
		}
		for _, denied := range append(s.Spec.DeniedZones[:len(s.Spec.DeniedZones):len(s.Spec.DeniedZones)], clusterDomain) {
			if own := string(denied); endpoint.Below(zone, own) || endpoint.Below(own, zone) {
				return fmt.Errorf("zone %s of %s holds or lies in %s, which is the management cluster's own: forwarded, its pods would not find each other; give the hosted cluster another domain", zone, us, own)
			}
		}
		c[zone] = us
	}
	return nil
}

// ourServers begins the names of our servers.
const ourServers = "oooi-"

// serverName is a service name (RFC 6335 §5.1) of at most 15 characters, as the field requires.
func serverName(s *v1alpha1.DNSServer) string {
	sum := sha256.Sum256([]byte(s.Namespace + "/" + s.Name))
	return fmt.Sprintf("%s%x", ourServers, sum[:5])
}

// serversOf the object: the servers of others, and ours by name.
func serversOf(present *unstructured.Unstructured) (theirs []any, ours map[string][]any) {
	ours = map[string][]any{}
	servers, _, _ := unstructured.NestedSlice(present.Object, "spec", "servers") // none, if it has another type
	for _, one := range servers {
		server, _ := one.(map[string]any)
		if name, _ := server["name"].(string); strings.HasPrefix(name, ourServers) {
			ours[name] = []any{one}
		} else {
			theirs = append(theirs, one)
		}
	}
	return theirs, ours
}
