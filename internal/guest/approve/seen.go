package approve

import (
	"encoding/json"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
)

const (
	requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	// nodeLeases are not watched, because every kubelet renews its own every ten seconds; one is read when it matters.
	nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"
)

// host is a Node as decisions see it.
type host struct {
	Name string
	csr.Node
}

var hosts = bounded.Collection[host]{Path: "/api/v1/nodes", Of: hostOfNode}

func hostOfNode(object []byte) (host, error) {
	n, err := bounded.Whole[bounded.Node](object)
	var told struct{ Status json.RawMessage }
	if err == nil {
		err = json.Unmarshal(object, &told)
	}
	// Of a Node without a status, only the name was read (internal/guest/bounded): it may well be Ready.
	h := host{Name: n.Metadata.Name, Node: csr.Node{Ready: n.Ready() || len(told.Status) == 0}}
	var all []string
	for _, a := range n.Status.Addresses {
		all = append(all, a.Address)
	}
	h.Addresses = addressesOf(all)
	return h, err
}

// perAddress is the memory of one address: in its slice, and in a map whose successor is built before it is dropped. As JSON it has a
// dozen octets.
const perAddress = 160

// Weight is the memory that the addresses take besides their JSON.
func (h host) Weight() int { return perAddress * len(h.Addresses) }

// taken are the addresses of a Service.
type taken struct {
	Service   string
	Addresses []netip.Addr
	Unknown   bool // its addresses are unknown, or there are too many Services to keep: any user of the hosted cluster can create them
}

// Weight is the memory that the addresses take besides their JSON.
func (t taken) Weight() int { return perAddress * len(t.Addresses) }

// takenByServices omits the ports, of which there may be many.
var takenByServices = bounded.Collection[taken]{Path: "/api/v1/services", Over: &taken{Unknown: true}, Of: func(object []byte) (taken, error) {
	var s struct {
		bounded.Identified
		Spec struct {
			Type           corev1.ServiceType `json:"type"`
			ClusterIP      string             `json:"clusterIP"`
			ClusterIPs     []string           `json:"clusterIPs"`
			ExternalIPs    []string           `json:"externalIPs"`
			LoadBalancerIP string             `json:"loadBalancerIP"`
		} `json:"spec"`
		Status struct {
			LoadBalancer struct {
				Ingress []struct {
					IP string `json:"ip"`
				} `json:"ingress"`
			} `json:"loadBalancer"`
		} `json:"status"`
	}
	err := json.Unmarshal(object, &s)
	at := append(append([]string{s.Spec.ClusterIP, s.Spec.LoadBalancerIP}, s.Spec.ClusterIPs...), s.Spec.ExternalIPs...)
	for _, i := range s.Status.LoadBalancer.Ingress {
		at = append(at, i.IP)
	}
	unread := s.Spec.Type == "" // only the name was read: the object has too many parts (internal/guest/bounded)
	return taken{s.Metadata.Namespace + "/" + s.Metadata.Name, addressesOf(at), unread}, err
}}

// apiEndpoints are the addresses that the hosted API server publishes for itself.
var apiEndpoints = bounded.Collection[endpoints]{
	Path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", Selects: bounded.Labelled(discovery.LabelServiceName + "=kubernetes"),
	Of: func(object []byte) (endpoints, error) {
		slice, err := bounded.Whole[discovery.EndpointSlice](object)
		var all []string
		for _, e := range slice.Endpoints {
			all = append(all, e.Addresses...)
		}
		return addressesOf(all), err
	},
}

// endpoints are the addresses of an EndpointSlice.
type endpoints []netip.Addr

// Weight is the memory that the addresses take besides their JSON.
func (e endpoints) Weight() int { return perAddress * len(e) }

// addressesOf parses texts, sorts the addresses, and returns each once.
func addressesOf(texts []string) (all []netip.Addr) {
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			all = append(all, ip.Unmap())
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// surroundings are the facts of the hosted cluster that are watched.
type surroundings struct {
	nodes    map[string]csr.Node
	holders  map[netip.Addr][]string // Nodes by address
	services map[netip.Addr]string
	unknown  bool // whether services lacks some
	api      map[netip.Addr]bool
}

func (s *surroundings) haveNodes(all []host) {
	s.nodes = map[string]csr.Node{}
	for _, h := range all {
		s.nodes[h.Name] = h.Node
	}
	s.holders = csr.Holders(s.nodes)
}

func (s *surroundings) haveServices(all []taken) {
	s.services, s.unknown = map[netip.Addr]string{}, false
	for _, t := range all {
		s.unknown = s.unknown || t.Unknown
		for _, ip := range t.Addresses {
			s.services[ip] = t.Service
		}
	}
}

func (s *surroundings) haveEndpoints(all []endpoints) {
	s.api = map[netip.Addr]bool{}
	for _, ip := range slices.Concat(all...) {
		s.api[ip] = true
	}
}
