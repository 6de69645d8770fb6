package dhcp

import (
	"context"
	"sync"
	"time"
)

// offerStands is how long a client has to ask for what it was offered when its server ends. Clients ask at once, and once more after a second (udhcpc).
const offerStands = time.Second

// offers are those that were sent.
type offers struct {
	mu   sync.Mutex
	last time.Time
	over bool
}

// another says whether one more may be sent, and notes it.
func (o *offers) another() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.last = time.Now()
	}
	return !o.over
}

// end lets no more be sent, and returns when the last one was.
func (o *offers) end() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	return o.last
}

// Leave ends the offers where another instance makes some, and waits until who has one has had the time to ask for it: no other server answers
// that (RFC 2131, 4.3.2), and a client whose server is gone repeats it for seconds before it begins anew.
func (s *Server) Leave() {
	if c := s.config.Load(); c != nil && len(c.Instances) > 1 {
		time.Sleep(time.Until(s.offers.end().Add(offerStands)))
	}
}

// leaves returns a context that ends when the server has left, which it begins to do when ctx ends.
func (i *instance) leaves(ctx context.Context) (serving context.Context, end func()) {
	serving, end = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		i.server.Leave()
		end()
	})
	return serving, end
}
