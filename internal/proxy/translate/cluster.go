package translate

import (
	"math"
	"net/netip"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// checkInterval and failedChecks make Envoy find a dead target, and close its connections, within seconds.
const (
	checkInterval = time.Second
	failedChecks  = 3
)

func cluster(b intent.Backend) *clusterv3.Cluster {
	out := &clusterv3.Cluster{
		Name:                                b.Name,
		ClusterDiscoveryType:                &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:                    &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS()},
		ConnectTimeout:                      duration(b.ConnectTimeout),
		PerConnectionBufferLimitBytes:       number(bufferBytes),
		LbPolicy:                            clusterv3.Cluster_ROUND_ROBIN,
		CommonLbConfig:                      balancing(),
		CircuitBreakers:                     noBreakers(),
		HealthChecks:                        []*corev3.HealthCheck{connectCheck()},
		IgnoreHealthOnHostRemoval:           true,
		CloseConnectionsOnHostHealthFailure: true,
		UpstreamBindConfig:                  &corev3.BindConfig{SocketOptions: bounded()},
		UpstreamConnectionOptions:           &clusterv3.UpstreamConnectionOptions{TcpKeepalive: keepalive()},
	}
	if b.Source.IsValid() {
		out.UpstreamBindConfig.SourceAddress = socketAddress(netip.AddrPortFrom(b.Source, 0)).GetSocketAddress()
	}
	return out
}

func endpoints(b intent.Backend) *endpointv3.ClusterLoadAssignment {
	group := &endpointv3.LocalityLbEndpoints{}
	for _, target := range b.Targets {
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
			Endpoint: &endpointv3.Endpoint{Address: socketAddress(target)},
		}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: b.Name, Endpoints: []*endpointv3.LocalityLbEndpoints{group}}
}

// connectCheck only opens a TCP connection: the proxy does not know its backends' protocols.
func connectCheck() *corev3.HealthCheck {
	return &corev3.HealthCheck{
		Timeout:            duration(checkInterval),
		Interval:           duration(checkInterval),
		NoTrafficInterval:  duration(checkInterval),
		UnhealthyThreshold: number(failedChecks),
		HealthyThreshold:   number(1),
		HealthChecker:      &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
	}
}

// balancing refuses a client at once when no target is healthy, where Envoy's panic mode would dial the dead ones. It uses a new target as
// soon as a check passes, where Envoy would wait a second to merge that update with others.
func balancing() *clusterv3.Cluster_CommonLbConfig {
	return &clusterv3.Cluster_CommonLbConfig{
		HealthyPanicThreshold: &typev3.Percent{Value: 0},
		UpdateMergeWindow:     duration(0),
	}
}

// noBreakers lifts Envoy's default of 1,024 connections per cluster: the bootstrap's global cap is the only limit.
func noBreakers() *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     number(math.MaxUint32),
		MaxPendingRequests: number(math.MaxUint32),
	}}}
}

// overADS says that a resource comes over the one aggregated stream.
func overADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}
