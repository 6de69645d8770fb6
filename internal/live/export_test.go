package live

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/diagnosecli"
)

// SetWriting sets how long a browser may take to take what it is sent.
func (s *Server) SetWriting(is time.Duration) { s.writing = is }

// Parts of Infras that are shared, for tests.
type Parts struct{ parts *parts }

// NewParts has none, and keeps each as short as may be.
func NewParts() Parts {
	p := newParts()
	p.idle = 0
	return Parts{p}
}

// Kept are how many there are.
func (p Parts) Kept() int {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	return len(p.parts.all)
}

// ForListOf is for who has the right to list these resources of ours in a namespace.
func (p Parts) ForListOf(infra types.NamespacedName, api client.Client, resources ...string) diagnosecli.Share {
	granted := map[right]bool{}
	for _, r := range resources {
		granted[right{"list", oooi, r, infra.Namespace}] = true
	}
	return p.parts.of(infra, guard{api, granted})
}
