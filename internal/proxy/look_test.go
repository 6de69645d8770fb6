package proxy

import (
	"io"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/ads"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

func TestWhoLooksOnHasNoPartInTheVerdict(t *testing.T) {
	g := NewWithT(t)
	l := prepareLab(t, route("a", freePort(t), newTarget(t, "a"), "a.example.com"))
	l.xdsPort = int(ports.Free(t))
	l.startSidecar(nil)
	l.startEnvoy()
	l.awaitReady()
	l.awaitAccepted()
	conn, err := grpc.NewClient(at(v1alpha1.Port(l.xdsPort)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	// asks waits for an answer: by then the server has read all earlier requests of the stream.
	asks := func(typeURL string) *discoveryv3.DeltaDiscoveryResponse {
		g.Expect(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL})).To(Succeed())
		response, err := stream.Recv()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.GetResources()).NotTo(BeEmpty(), "it sees what Envoy is told")
		return response
	}
	accepted := ads.Verdict{Connected: true, Accepted: true}
	seen := asks(resource.ListenerType)
	g.Expect(l.proxy.ads.Verdict()).To(Equal(accepted), "of one that came")
	g.Expect(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType, ResponseNonce: seen.GetNonce(), ErrorDetail: &status.Status{Message: "no"}})).To(Succeed())
	asks(resource.ClusterType)
	g.Expect(l.proxy.ads.Verdict()).To(Equal(accepted), "of one that refuses")
	g.Expect(stream.CloseSend()).To(Succeed())
	_, err = stream.Recv()
	g.Expect(err).To(MatchError(io.EOF))
	g.Expect(l.proxy.ads.Verdict()).To(Equal(accepted), "of one that left")
	g.Expect(l.logs.said()).To(ContainElement(HavePrefix("a client of --xds-port")))
}
