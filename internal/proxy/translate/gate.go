package translate

import (
	"fmt"
	"net/netip"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	connectionlimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	networkinputsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	hashingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/consistent_hashing/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// A port on the VLAN is two listeners (dns-proxy-rules.md#shares, docs/adr/0014-a-gate-counts-sources.md): a gate that clients connect to,
// which counts connections by source, and an internal listener that routes. Each filter chain has its own count (connection_limit), so
// chains that route would count each route separately, and a silent connection has no chain yet.
const (
	// blocks of sources have a filter chain each. The hash of an address chooses its block, so neighbouring addresses are in different
	// ones.
	blocks = 32
	// shares: a block may have 1/shares of a gate's connections. A block's workers need room, and a VM connects to several gates.
	shares = 8
	// counted is the prefix of the gates' statistics: connection_limit.gate.limited_connections.
	counted = "gate"
)

// gate depends only on its port and on Envoy's number of connections, so that no change of routes drains its streams.
func gate(l intent.Listener, connections int64) *listenerv3.Listener {
	out := bound(l, &listenerv3.Listener{PerConnectionBufferLimitBytes: number(bufferBytes), FilterChainMatcher: bySource()})
	filters := []*listenerv3.Filter{atMost(max(1, connections/shares))}
	if noted(l) {
		filters = append(filters, remembersSource())
	}
	filters = append(filters, filter(tcpProxy(counted, behind(l.At))))
	for n := range blocks {
		out.FilterChains = append(out.FilterChains, &listenerv3.FilterChain{Name: block(n), Filters: filters})
	}
	return out
}

// behind names the internal listener that a gate leads to, and its cluster. No backend can have such a name; it has no dots, at which Envoy
// would split names in statistics.
func behind(at netip.AddrPort) string {
	return "behind/" + strings.NewReplacer(".", "-", ":", "-", "[", "", "]", "").Replace(at.String())
}

// internal makes a listener reachable only from within Envoy.
func internal(l intent.Listener, out *listenerv3.Listener) *listenerv3.Listener {
	out.Name = behind(l.At)
	out.ListenerSpecifier = &listenerv3.Listener_InternalListener{InternalListener: &listenerv3.Listener_InternalListenerConfig{}}
	return out
}

// towards is the cluster whose one endpoint is an internal listener.
func towards(l intent.Listener) *clusterv3.Cluster {
	at := &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
		AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: behind(l.At)},
	}}}
	out := &clusterv3.Cluster{
		Name:                 behind(l.At),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: behind(l.At), Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}}}},
		}}},
		PerConnectionBufferLimitBytes: number(bufferBytes),
		CircuitBreakers:               noBreakers(),
	}
	if noted(l) {
		out.TransportSocket = handsOn()
	}
	return out
}

func block(n int) string { return fmt.Sprintf("block-%d", n) }

// atMost closes a connection above the filter chain's share as soon as it is accepted.
func atMost(connections int64) *listenerv3.Filter {
	return &listenerv3.Filter{
		Name: "envoy.filters.network.connection_limit",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&connectionlimitv3.ConnectionLimit{
			StatPrefix: counted, MaxConnections: wrapperspb.UInt64(uint64(connections)),
		})},
	}
}

// bySource chooses a block by the hash of the source address. A match means hash % blocks >= n (consistent_hashing.proto of Envoy 1.40), so
// the highest comes first.
func bySource() *matcherv3.Matcher {
	list := &matcherv3.Matcher_MatcherList{}
	for n := blocks - 1; n >= 0; n-- {
		list.Matchers = append(list.Matchers, &matcherv3.Matcher_MatcherList_FieldMatcher{
			Predicate: hashedTo(n),
			OnMatch:   &matcherv3.Matcher_OnMatch{OnMatch: &matcherv3.Matcher_OnMatch_Action{Action: named("chain", wrapperspb.String(block(n)))}},
		})
	}
	return &matcherv3.Matcher{MatcherType: &matcherv3.Matcher_MatcherList_{MatcherList: list}}
}

func hashedTo(n int) *matcherv3.Matcher_MatcherList_Predicate {
	return &matcherv3.Matcher_MatcherList_Predicate{MatchType: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
		SinglePredicate: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
			Input: named("source", &networkinputsv3.SourceIPInput{}),
			Matcher: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
				CustomMatch: named("hash", &hashingv3.ConsistentHashing{Threshold: uint32(n), Modulo: blocks}),
			},
		},
	}}
}

func named(name string, config proto.Message) *xdscorev3.TypedExtensionConfig {
	return &xdscorev3.TypedExtensionConfig{Name: name, TypedConfig: packed(config)}
}
