// Package translate turns an intent into Envoy's configuration, with constructors that are smaller than the protos they hide.
package translate

import (
	"net/netip"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

const (
	// idleTimeout outlives konnectivity and watch streams, which Envoy's default hour would cut (upstream.md#long-streams).
	idleTimeout = 24 * time.Hour
	// bufferBytes bounds each of Envoy's buffers of one connection. Smaller ones cost processor time: Envoy reads 16 KiB at a time.
	bufferBytes = 16 << 10
	// socketBytes bounds each of the kernel's buffers of one connection, which count towards the container's memory, and would grow to 4
	// and 6 MiB (tcp_wmem, tcp_rmem). The kernel doubles it for its own needs (socket(7)).
	socketBytes = 64 << 10
)

// Config is everything that Envoy gets over xDS.
type Config struct {
	Listeners []*listenerv3.Listener
	Clusters  []*clusterv3.Cluster
	Endpoints []*endpointv3.ClusterLoadAssignment
}

// Intent translates an intent for an Envoy with this many connections. A change of routes changes only filter chains, a change of targets
// only endpoints.
func Intent(in intent.Intent, connections int64) Config {
	var c Config
	for _, l := range in.Listeners {
		c.Listeners = append(c.Listeners, listeners(l, connections)...)
		if !l.OnPods {
			c.Clusters = append(c.Clusters, towards(l))
		}
	}
	for _, b := range in.Backends {
		c.Clusters = append(c.Clusters, cluster(b))
		c.Endpoints = append(c.Endpoints, endpoints(b))
	}
	return c
}

// keepalive finds a peer that vanished silently within 2 minutes.
func keepalive() *corev3.TcpKeepalive {
	return &corev3.TcpKeepalive{KeepaliveTime: number(60), KeepaliveInterval: number(20), KeepaliveProbes: number(3)}
}

func socketAddress(at netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       at.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
	}}}
}

func number(n uint32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(n) }

func duration(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

// packed cannot fail: a message that was just built here can be marshalled.
func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}
