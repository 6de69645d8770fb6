// Package intent says in the domain's words what one proxy does: where it listens, which server name leads to which backend, and what it
// dials. It has neither API types nor Envoy's terms, and is stored as JSON across restarts.
package intent

import (
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Protocol is how a port routes.
type Protocol string

const (
	// TCP routes by port alone.
	TCP Protocol = "TCP"
	// TLS routes by server name and never terminates.
	TLS Protocol = "TLS"
)

// Backends that a worker says a hello to on its way to a Node, by the names that an Infra's ProxyServer gives them.
const (
	Ignition     = "ignition"
	API          = "api"
	Konnectivity = "konnectivity"
)

// Intent is what one proxy does.
type Intent struct {
	Listeners []Listener `json:"listeners"` // by address and port
	Backends  []Backend  `json:"backends"`  // by name
	// Missing are captured addresses that this pod does not carry, because it was created before they were wanted.
	Missing []netip.Addr `json:"missing,omitempty"`
}

// Listener is one port of one address.
type Listener struct {
	At       netip.AddrPort `json:"at"`
	Device   string         `json:"device"`
	Protocol Protocol       `json:"protocol"`
	Routes   []Route        `json:"routes,omitempty"` // by backend
	// CatchAll is the backend of connections that no route matches; empty closes them.
	CatchAll string `json:"catchAll,omitempty"`
	// OnPods marks a listener on the pod's own address.
	OnPods bool `json:"onPods,omitempty"`
}

// Route routes server names to a backend.
type Route struct {
	Backend     string   `json:"backend"`
	ServerNames []string `json:"serverNames"` // sorted; may begin with "*."
}

// Service is where a backend's targets are read from.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      uint16 `json:"port"`
}

// Key names the Service without the port.
func (s Service) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// String is namespace/name:port.
func (s Service) String() string { return fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Port) }

// Backend is what clients are connected to.
type Backend struct {
	Name string `json:"name"`
	// ConnectTimeout limits one connection attempt.
	ConnectTimeout time.Duration `json:"connectTimeout"`
	// Service is where Targets come from; nil if the user listed them.
	Service *Service         `json:"service,omitempty"`
	Targets []netip.AddrPort `json:"targets,omitempty"` // sorted
	// Source is the address that connections come from; unset lets the kernel choose.
	Source netip.Addr `json:"source,omitzero"`
}

// Services are those from which the backends' targets are read.
func (in Intent) Services() []Service {
	var services []Service
	for _, b := range in.Backends {
		if b.Service != nil {
			services = append(services, *b.Service)
		}
	}
	return services
}

// ProtocolTurned is the first listener whose protocol differs in next. Envoy would drain such a port with every stream, so the port must be
// removed first.
func (in Intent) ProtocolTurned(next Intent) (netip.AddrPort, bool) {
	was := map[netip.AddrPort]Protocol{}
	for _, l := range in.Listeners {
		was[l.At] = l.Protocol
	}
	for _, l := range next.Listeners {
		if p, live := was[l.At]; live && p != l.Protocol {
			return l.At, true
		}
	}
	return netip.AddrPort{}, false
}
