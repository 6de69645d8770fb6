// Package bootstrap makes Envoy's bootstrap: where its configuration comes from, its administration socket, and how many connections it may
// have. It is pure; the planner uses it too.
package bootstrap

import (
	"fmt"
	"path"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	internalv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"time"
)

const (
	// xdsCluster is the sidecar.
	xdsCluster = "xds"
	// DefaultSocket is where the sidecar listens in a pod.
	DefaultSocket = "/xds/xds.sock"
	// MemoryLimitVariable is the environment variable with the memory limit of Envoy's container, in bytes.
	MemoryLimitVariable = "ENVOY_MEMORY_LIMIT"
	// DrainSeconds keeps the streams of a changed chain: Envoy's default 10 minutes would cut every log that is being followed.
	DrainSeconds = 24 * 60 * 60
)

// Arguments start Envoy with a bootstrap file. A drain lasts a day; hot restart would need an identity shared between pods.
func Arguments(file string) []string {
	return []string{"-c", file, "--disable-hot-restart", "--drain-time-s", fmt.Sprint(DrainSeconds), "--log-level", "warn", "--concurrency", "2"}
}

// AdminSocket is Envoy's administration socket, beside the sidecar's.
func AdminSocket(xdsSocket string) string { return path.Join(path.Dir(xdsSocket), "admin.sock") }

// Template is a proxy's bootstrap, without what only its machine knows.
func Template(namespace, name string) string {
	out, err := encode(&bootstrapv3.Bootstrap{
		Node: &corev3.Node{Id: name, Cluster: path.Join(namespace, name)},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{
			AdsConfig: &corev3.ApiConfigSource{
				ApiType:             corev3.ApiConfigSource_DELTA_GRPC,
				TransportApiVersion: corev3.ApiVersion_V3,
				GrpcServices:        []*corev3.GrpcService{Sidecar()},
			},
			CdsConfig: overADS(),
			LdsConfig: overADS(),
		},
		Watchdogs: &bootstrapv3.Watchdogs{MainThreadWatchdog: endsStuck(), WorkerWatchdog: endsStuck()},
	})
	if err != nil {
		panic(err) // a message that was just built here encodes
	}
	return string(out)
}

// endsStuck is Envoy's own liveness check: a thread that is stuck for a minute ends Envoy, which is then restarted. A liveness probe could
// only reach Envoy's socket through the sidecar, so without the sidecar it would cut every stream.
func endsStuck() *bootstrapv3.Watchdog {
	return &bootstrapv3.Watchdog{KillTimeout: durationpb.New(time.Minute)}
}

// Machine is what only the machine that runs Envoy knows.
type Machine struct {
	// XDSSocket is the sidecar's Unix socket.
	XDSSocket string
	// Connections that Envoy may have; it refuses more.
	Connections int64
	// MemoryBytes is the limit of Envoy's container; 0 means none.
	MemoryBytes int64
}

// Complete adds to a template what the machine knows.
func Complete(template string, m Machine) ([]byte, error) {
	b := &bootstrapv3.Bootstrap{}
	asJSON, err := yaml.YAMLToJSON([]byte(template))
	if err == nil {
		err = protojson.Unmarshal(asJSON, b)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap template: %w; give it as this release's operator wrote it into the proxy's ConfigMap, or give a ProxyServer by --config-file", err)
	}
	// The administration socket answers at the cap too, for then it is needed.
	b.Admin = &bootstrapv3.Admin{Address: pipe(AdminSocket(m.XDSSocket)), IgnoreGlobalConnLimit: true}
	b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{sidecarCluster(m.XDSSocket)}}
	b.OverloadManager = overload(m)
	b.BootstrapExtensions = []*corev3.TypedExtensionConfig{internalListeners()}
	if err := b.ValidateAll(); err != nil {
		return nil, fmt.Errorf("completing the bootstrap template: %w", err)
	}
	return encode(b)
}

// internalListeners enables internal listeners, with a small buffer in between; Envoy's default would be 1 MiB per connection
// (internal_listener.proto of Envoy 1.40).
func internalListeners() *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{
		Name:        "envoy.bootstrap.internal_listener",
		TypedConfig: packed(&internalv3.InternalListener{BufferSizeKb: wrapperspb.UInt32(8)}),
	}
}

// Sidecar is how Envoy calls its sidecar.
func Sidecar() *corev3.GrpcService {
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: xdsCluster}}}
}

func sidecarCluster(socket string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:           xdsCluster,
		ConnectTimeout: durationpb.New(time.Second),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: xdsCluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: pipe(socket)}}}},
		}}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": packed(http2())},
	}
}

func http2() *httpv3.HttpProtocolOptions {
	return &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
		},
	}}
}

func overADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// pipe is a socket that only the pod's containers see, and any user may use.
func pipe(path string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path, Mode: 0o666}}}
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // a message that was just built here encodes
	}
	return a
}

// encode converts JSON to YAML, which removes protojson's deliberately random spacing.
func encode(b *bootstrapv3.Bootstrap) ([]byte, error) {
	asJSON, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(asJSON)
}
