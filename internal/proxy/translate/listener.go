package translate

import (
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// helloTimeout is how long a connection may take to send its ClientHello; OpenShift's router waits as long.
const helloTimeout = 5 * time.Second

// listeners of a port: one on the pod network; on the VLAN a gate, and the listener behind it.
func listeners(l intent.Listener, connections int64) []*listenerv3.Listener {
	if l.OnPods {
		return []*listenerv3.Listener{bound(l, routing(l))}
	}
	return []*listenerv3.Listener{internal(l, routing(l)), gate(l, connections)}
}

// routing depends on routes only in filter_chains and default_filter_chain: Envoy changes these in place. If any other field differs it
// drains the port, with every stream on it.
func routing(l intent.Listener) *listenerv3.Listener {
	out := &listenerv3.Listener{PerConnectionBufferLimitBytes: number(bufferBytes)}
	if l.Protocol == intent.TCP {
		out.FilterChains = []*listenerv3.FilterChain{chain(l, l.CatchAll, nil)}
		return out
	}
	if noted(l) {
		out.AccessLog = unmatched(l.At.Port())
	}
	out.ListenerFilters = []*listenerv3.ListenerFilter{tlsInspector()}
	out.ListenerFiltersTimeout = duration(helloTimeout)
	for _, r := range l.Routes {
		out.FilterChains = append(out.FilterChains, chain(l, r.Backend, r.ServerNames))
	}
	if l.CatchAll != "" {
		out.DefaultFilterChain = chain(l, l.CatchAll, nil)
	}
	return out
}

// bound sets a listener's address and device.
func bound(l intent.Listener, out *listenerv3.Listener) *listenerv3.Listener {
	out.Name = l.At.String()
	out.Address = socketAddress(l.At)
	out.SocketOptions = append(bounded(), boundTo(l.Device))
	out.TcpKeepalive = keepalive()
	return out
}

// boundTo restricts the listening socket to one device (dns-proxy-rules.md#sockets); it needs no capability.
func boundTo(device string) *corev3.SocketOption {
	return &corev3.SocketOption{
		Description: "SO_BINDTODEVICE",
		Level:       unix.SOL_SOCKET,
		Name:        unix.SO_BINDTODEVICE,
		Value:       &corev3.SocketOption_BufValue{BufValue: []byte(device)},
		State:       corev3.SocketOption_STATE_PREBIND,
	}
}

// bounded fixes the size of a socket's buffers. Accepted connections have that of their listening socket, whose window scale must be known
// before it listens.
func bounded() []*corev3.SocketOption {
	return []*corev3.SocketOption{sized("SO_SNDBUF", unix.SO_SNDBUF), sized("SO_RCVBUF", unix.SO_RCVBUF)}
}

func sized(description string, name int64) *corev3.SocketOption {
	return &corev3.SocketOption{
		Description: description,
		Level:       unix.SOL_SOCKET,
		Name:        name,
		Value:       &corev3.SocketOption_IntValue{IntValue: socketBytes},
		State:       corev3.SocketOption_STATE_PREBIND,
	}
}

// tlsInspector reads the server name. A connection whose ClientHello does not parse is closed, never routed.
func tlsInspector() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{
		Name: "envoy.filters.listener.tls_inspector",
		ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&tlsinspectorv3.TlsInspector{
			InitialReadBufferSize:                     number(1024),
			CloseConnectionOnClientHelloParsingErrors: true,
		})},
	}
}

// chain leads connections to a backend; without server names it matches every connection. Envoy tries exact names before wildcards.
func chain(l intent.Listener, backend string, serverNames []string) *listenerv3.FilterChain {
	proxy := tcpProxy(backend, backend)
	if noted(l) && slices.Contains([]string{intent.Ignition, intent.API, intent.Konnectivity}, backend) {
		logged(proxy)
	}
	out := &listenerv3.FilterChain{Name: backend, Filters: []*listenerv3.Filter{filter(proxy)}}
	if len(serverNames) > 0 {
		out.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: serverNames}
	}
	return out
}

func tcpProxy(statPrefix, cluster string) *tcpproxyv3.TcpProxy {
	return &tcpproxyv3.TcpProxy{
		StatPrefix:         statPrefix,
		ClusterSpecifier:   &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster},
		IdleTimeout:        duration(idleTimeout),
		MaxConnectAttempts: number(intent.Attempts),
	}
}

func filter(proxy *tcpproxyv3.TcpProxy) *listenerv3.Filter {
	return &listenerv3.Filter{Name: "envoy.filters.network.tcp_proxy", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(proxy)}}
}
