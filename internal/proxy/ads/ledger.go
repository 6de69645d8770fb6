package ads

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
)

// Verdict is Envoy's answer to the configuration.
type Verdict struct {
	// Connected: an Envoy is connected.
	Connected bool
	// Accepted: it runs exactly the configuration that was set.
	Accepted bool
	// Rejection is Envoy's own text about what it rejected.
	Rejection string
}

// versions are those of the resources that Envoy has, or should have, by type and name.
type versions = map[string]map[string]string

// ledger compares what Envoy should have with what it acknowledged. The acknowledgement of one response does not tell: a response has only
// changes, and a new stream begins with what Envoy has already.
type ledger struct {
	mu         sync.Mutex
	stream     int64 // the newest; an older one is Envoy's dead connection
	connected  bool
	wanted     versions
	running    versions
	sent       map[string]*discoveryv3.DeltaDiscoveryResponse // by type and nonce, awaiting Envoy's answer
	rejections map[string]string                              // by type, of its last answered response
	changed    chan struct{}
	answered   chan struct{} // the same, for the server itself
}

func newLedger() *ledger {
	return &ledger{changed: make(chan struct{}, 1), answered: make(chan struct{}, 1)}
}

// Changed signals, to one listener, that the verdict may have changed.
func (l *ledger) Changed() <-chan struct{} { return l.changed }

// Verdict is Envoy's answer so far.
func (l *ledger) Verdict() Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	rejection := strings.Join(slices.Collect(maps.Values(l.rejections)), "; ")
	return Verdict{Connected: l.connected, Rejection: rejection, Accepted: l.connected && rejection == "" && l.runsWanted()}
}

// runsWanted says whether Envoy has what it should. It may still have endpoints of removed clusters: it unsubscribes from them later.
func (l *ledger) runsWanted() bool {
	for name, version := range l.wanted[resource.EndpointType] {
		if l.running[resource.EndpointType][name] != version {
			return false
		}
	}
	return maps.Equal(l.wanted[resource.ListenerType], l.running[resource.ListenerType]) &&
		maps.Equal(l.wanted[resource.ClusterType], l.running[resource.ClusterType])
}

// runs says whether Envoy has exactly these, of the types that are named.
func (l *ledger) runs(these versions) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for typeURL, ofType := range these {
		if !l.connected || !maps.Equal(l.running[typeURL], ofType) {
			return false
		}
	}
	return true
}

func (l *ledger) want(wanted versions) {
	l.update(func() { l.wanted = wanted })
}

func (l *ledger) update(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	for _, signal := range []chan struct{}{l.changed, l.answered} {
		select {
		case signal <- struct{}{}:
		default: // one signal is pending already
		}
	}
}

func (l *ledger) callbacks() serverv3.CallbackFuncs {
	return serverv3.CallbackFuncs{
		DeltaStreamOpenFunc: func(_ context.Context, stream int64, _ string) error {
			l.update(func() { l.opened(stream) })
			return nil
		},
		DeltaStreamClosedFunc: func(stream int64, _ *corev3.Node) {
			l.update(func() { l.connected = l.connected && stream != l.stream })
		},
		StreamDeltaRequestFunc: func(stream int64, request *discoveryv3.DeltaDiscoveryRequest) error {
			l.update(func() { l.heard(stream, request) })
			return nil
		},
		StreamDeltaResponseFunc: func(stream int64, _ *discoveryv3.DeltaDiscoveryRequest, response *discoveryv3.DeltaDiscoveryResponse) {
			l.update(func() {
				if stream == l.stream {
					l.sent[response.GetTypeUrl()+response.GetNonce()] = response
				}
			})
		},
	}
}

func (l *ledger) opened(stream int64) {
	l.stream, l.connected = stream, true
	l.running, l.rejections = versions{}, map[string]string{}
	l.sent = map[string]*discoveryv3.DeltaDiscoveryResponse{}
}

// heard reads a request: what Envoy has when a stream begins, what it unsubscribes from, and its answer to a response.
func (l *ledger) heard(stream int64, request *discoveryv3.DeltaDiscoveryRequest) {
	if stream != l.stream {
		return
	}
	typeURL := request.GetTypeUrl()
	if l.running[typeURL] == nil {
		l.running[typeURL] = map[string]string{}
		maps.Copy(l.running[typeURL], request.GetInitialResourceVersions())
	}
	for _, name := range request.GetResourceNamesUnsubscribe() {
		delete(l.running[typeURL], name)
	}
	key := typeURL + request.GetResponseNonce()
	response := l.sent[key]
	delete(l.sent, key)
	switch {
	case response == nil:
	case request.GetErrorDetail() != nil:
		l.rejections[typeURL] = request.GetErrorDetail().GetMessage()
	default:
		delete(l.rejections, typeURL)
		l.acknowledged(response)
	}
}

func (l *ledger) acknowledged(response *discoveryv3.DeltaDiscoveryResponse) {
	running := l.running[response.GetTypeUrl()]
	for _, r := range response.GetResources() {
		running[r.GetName()] = r.GetVersion()
	}
	for _, name := range response.GetRemovedResources() {
		delete(running, name)
	}
}
