// Package hellos receives from Envoy, by its access log over gRPC, what clients on the VLAN said to which backend, and what became of it.
package hellos

import (
	"net/netip"
	"strconv"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"

	"github.com/cldmnky/oooi/internal/proxy/translate"
)

// Hello is a connection that has sent its ClientHello, when a target has accepted it, and once more when it ends.
type Hello struct {
	// Source is the client's address.
	Source netip.Addr
	// At is when the connection was opened.
	At time.Time
	// ServerName is as the client sent it; empty if it sent none.
	ServerName string
	// Port of the proxy, if there is no backend.
	Port uint16
	// Backend that it was for; empty if there is none for its server name.
	Backend string
	// Accepted by a target of the backend.
	Accepted bool
	// Received by the client, in bytes; 0 before the connection ends.
	Received uint64
}

// Register has a gRPC server take hellos from Envoy, and give them to take, which must not block.
func Register(server grpc.ServiceRegistrar, take func(Hello)) {
	alsv3.RegisterAccessLogServiceServer(server, service{take: take})
}

type service struct {
	alsv3.UnimplementedAccessLogServiceServer
	take func(Hello)
}

// StreamAccessLogs implements the access log service. Envoy drops entries while nobody reads.
func (s service) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, entry := range message.GetTcpLogs().GetLogEntry() {
			if hello, understood := of(entry); understood {
				s.take(hello)
			}
		}
	}
}

// of reads an entry; false if it has no client's address.
func of(entry *accesslogv3.TCPAccessLogEntry) (Hello, bool) {
	common, ended := entry.GetCommonProperties(), entry.GetConnectionProperties()
	source, err := netip.ParseAddr(common.GetCustomTags()[translate.TagSource])
	port, _ := strconv.ParseUint(common.GetCustomTags()[translate.TagPort], 10, 16) // only one without a backend has it
	return Hello{
		Port:   uint16(port),
		Source: source, At: common.GetStartTime().AsTime(), ServerName: common.GetCustomTags()[translate.TagServerName],
		Backend: common.GetUpstreamCluster(), Accepted: common.GetUpstreamLocalAddress() != nil, Received: ended.GetSentBytes(),
	}, err == nil
}
