// Package ads serves Envoy its configuration as delta ADS over a Unix socket, and knows what Envoy has of it.
package ads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/flock"
	"github.com/cldmnky/oooi/internal/proxy/translate"
)

// theEnvoy is the only node that is served, whatever ID it sends.
const theEnvoy = "envoy"

type anyNode struct{}

func (anyNode) ID(*corev3.Node) string { return theEnvoy }

// Server serves one Envoy.
type Server struct {
	*ledger
	snapshots cachev3.SnapshotCache

	mu      sync.Mutex
	sent    *translate.Config // what Envoy was sent; nil before the first Set
	path    []step            // the steps from there to what it should have
	awaited versions          // what Envoy has to acknowledge before the next step
	resends int
}

// New makes a server. Set a configuration before Serve, because Envoy applies an empty one as it is.
func New() *Server {
	return &Server{ledger: newLedger(), snapshots: cachev3.NewSnapshotCache(true, anyNode{}, nil)}
}

// Set makes a configuration the one that Envoy should have, and sends the first step towards it.
func (s *Server) Set(ctx context.Context, config translate.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := steps(s.sent, config)
	for n := range path {
		var err error
		if path[n].snapshot, err = snapshot(path[n].config); err != nil {
			return err
		}
	}
	s.want(contents(path[len(path)-1].snapshot.VersionMap))
	// Envoy says only in prose which resources of a response it rejected, so after a rejection all are sent again; those that it has
	// already change nothing.
	if s.Verdict().Rejection != "" {
		s.resends++
	}
	s.path = path
	return s.next(ctx)
}

// Advance takes Envoy from step to step until the context ends.
func (s *Server) Advance(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.answered:
			if err := s.advance(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *Server) advance(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.path) == 0 || !s.runs(s.awaited) {
		return nil
	}
	return s.next(ctx)
}

// next sends the next step.
func (s *Server) next(ctx context.Context) error {
	now := s.path[0]
	s.awaited = versions{now.awaits: contents(now.snapshot.VersionMap)[now.awaits]}
	s.sent, s.path = &now.config, s.path[1:]
	s.mark(now.snapshot.VersionMap)
	return s.snapshots.SetSnapshot(ctx, theEnvoy, now.snapshot)
}

func snapshot(config translate.Config) (*cachev3.Snapshot, error) {
	snapshot, err := cachev3.NewSnapshot("", map[resource.Type][]types.Resource{
		resource.ListenerType: resources(config.Listeners),
		resource.ClusterType:  resources(config.Clusters),
		resource.EndpointType: resources(config.Endpoints),
	})
	if err == nil {
		err = errors.Join(snapshot.Consistent(), snapshot.ConstructVersionMap())
	}
	if err != nil {
		return nil, fmt.Errorf("building the snapshot: %w", err)
	}
	return snapshot, nil
}

// contents copies versions as they are: hashes of the resources' contents.
func contents(of versions) versions {
	copied := versions{}
	for typeURL, ofType := range of {
		copied[typeURL] = maps.Clone(ofType)
	}
	return copied
}

// mark extends the versions of resources that must be sent again although their content is the same.
func (s *Server) mark(all versions) {
	// Envoy warms a changed cluster until it gets its endpoints again, and acknowledges no cluster before.
	for name := range all[resource.EndpointType] {
		all[resource.EndpointType][name] += all[resource.ClusterType][name]
	}
	if s.resends == 0 {
		return
	}
	for _, ofType := range all {
		for name := range ofType {
			ofType[name] += fmt.Sprintf("-%d", s.resends)
		}
	}
}

// Listen opens a Unix socket for Envoy, in place of the one of an earlier run. A lock file tells that from a socket that is in use.
func Listen(socket string) (net.Listener, error) {
	// Other users may enter the directory, because Envoy may run as another user.
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil { //nolint:gosec // as said
		return nil, fmt.Errorf("making the directory of the socket to Envoy: %w", err)
	}
	lock, err := flock.Take(socket+".lock", "another oooi proxy serves this socket")
	if err != nil {
		return nil, err
	}
	listener, err := listen(socket)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return locked{listener, lock}, nil
}

// locked is a listener that keeps the lock of its socket until it is closed.
type locked struct {
	net.Listener
	lock *os.File
}

func (l locked) Close() error { return errors.Join(l.Listener.Close(), l.lock.Close()) }

func listen(socket string) (net.Listener, error) {
	listener, err := daemon.ListenUnix(socket)
	if err != nil {
		return nil, fmt.Errorf("listening for Envoy: %w", err)
	}
	// All users may connect: only the pod's containers have the socket's volume.
	if err := os.Chmod(socket, 0o666); err != nil { //nolint:gosec // Envoy may run as another user
		return nil, errors.Join(fmt.Errorf("opening the socket to Envoy: %w", err), listener.Close())
	}
	return listener, nil
}

// Serve answers Envoy on a listener until the context ends, with other services that Envoy finds there. Streams end with it, but Envoy keeps what
// it has.
func (s *Server) Serve(ctx context.Context, listener net.Listener, also ...func(grpc.ServiceRegistrar)) error {
	return s.serve(ctx, listener, s.callbacks(), also...)
}

// Show answers other clients on a listener, which get what Envoy gets. Their streams do not count for the verdict: one would be taken for
// Envoy's newest.
func (s *Server) Show(ctx context.Context, listener net.Listener, came func()) error {
	return s.serve(ctx, listener, serverv3.CallbackFuncs{
		DeltaStreamOpenFunc: func(context.Context, int64, string) error { came(); return nil },
		StreamOpenFunc:      func(context.Context, int64, string) error { came(); return nil },
	})
}

func (s *Server) serve(ctx context.Context, listener net.Listener, callbacks serverv3.Callbacks, also ...func(grpc.ServiceRegistrar)) error {
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, s.snapshots, callbacks))
	for _, register := range also {
		register(server)
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

func resources[T types.Resource](typed []T) []types.Resource {
	all := make([]types.Resource, len(typed))
	for i, r := range typed {
		all[i] = r
	}
	return all
}
