package translate

import (
	"strconv"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	grpcv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	filterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	setfilterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	internalupstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/internal_upstream/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"

	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// Tags of a connection in the access log that Envoy sends its sidecar.
const (
	// TagSource is the client's address on the VLAN.
	TagSource = "source"
	// TagPort is the port of a listener that has no filter chain for a connection.
	TagPort = "port"
	// TagServerName is the server name in its ClientHello; empty if it sent none.
	TagServerName = "serverName"
)

const (
	// sourceKey is the filter state in which the gate hands the client's address on: to the listener behind it, every client is Envoy itself.
	sourceKey = "oooi.source"
	// logPause is how long Envoy gathers entries before it sends them.
	logPause = 200 * time.Millisecond
)

// noted says whether a listener's hellos are: those of workers. What is no TLS has no hello.
func noted(l intent.Listener) bool { return l.Protocol == intent.TLS && !l.OnPods }

// remembersSource is a filter of the gate. The source is part of the key of Envoy's pool of connections (hashable_string), so that a connection
// whose client left before it was used is not the next client's, under the first one's address.
func remembersSource() *listenerv3.Filter {
	return &listenerv3.Filter{
		Name: "envoy.filters.network.set_filter_state",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&setfilterstatev3.Config{OnNewConnection: []*filterstatev3.FilterStateValue{{
			Key:        &filterstatev3.FilterStateValue_ObjectKey{ObjectKey: sourceKey},
			FactoryKey: "envoy.hashable_string",
			Value: &filterstatev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{
				TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"}},
			}}},
			SharedWithUpstream: filterstatev3.FilterStateValue_ONCE,
		}}})},
	}
}

// handsOn is the socket from the gate to the listener behind it, which takes the filter state along.
func handsOn() *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name: "envoy.transport_sockets.internal_upstream",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&internalupstreamv3.InternalUpstreamTransport{TransportSocket: &corev3.TransportSocket{
			Name:       "envoy.transport_sockets.raw_buffer",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&rawbufferv3.RawBuffer{})},
		}})},
	}
}

// logged has a backend's connections told when a target has accepted them, and when they end.
func logged(proxy *tcpproxyv3.TcpProxy) {
	proxy.AccessLog = []*accesslogv3.AccessLog{toSidecar(nil)}
	proxy.AccessLogOptions = &tcpproxyv3.TcpProxy_TcpAccessLogOptions{FlushAccessLogOnConnected: true}
}

// unmatched has a listener tell of the connections that no filter chain takes (response flag NR).
func unmatched(port uint16) []*accesslogv3.AccessLog {
	return []*accesslogv3.AccessLog{toSidecar(&accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
		ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"NR"}},
	}}, tag(TagPort, strconv.Itoa(int(port))))}
}

func toSidecar(filter *accesslogv3.AccessLogFilter, tags ...*tracingv3.CustomTag) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.tcp_grpc", Filter: filter,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed(&grpcv3.TcpGrpcAccessLogConfig{CommonConfig: &grpcv3.CommonGrpcAccessLogConfig{
			LogName: "hellos", GrpcService: bootstrap.Sidecar(), TransportApiVersion: corev3.ApiVersion_V3,
			BufferFlushInterval: duration(logPause),
			CustomTags:          append(tags, tag(TagSource, "%FILTER_STATE("+sourceKey+":PLAIN)%"), tag(TagServerName, "%REQUESTED_SERVER_NAME%")),
		}})},
	}
}

func tag(name, format string) *tracingv3.CustomTag {
	return &tracingv3.CustomTag{Tag: name, Type: &tracingv3.CustomTag_Value{Value: format}}
}
