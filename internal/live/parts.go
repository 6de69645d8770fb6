package live

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/diagnosecli"
)

// parts are what is large of an Infra, as it was read last: viewers with other rights than each other's see other pages, of the same workers.
type parts struct {
	mu  sync.Mutex
	all map[partOf]*part
}

type partOf struct {
	infra types.NamespacedName
	part  string
}

// part was read by somebody who had all of the rights that reading it needs. Who has them, too, may see it until another reading would be due.
type part struct {
	mu    sync.Mutex // held while it is read
	is    any
	needs []right
	until time.Time
}

func newParts() *parts { return &parts{all: map[partOf]*part{}} }

// of an Infra, for who has these rights.
func (p *parts) of(infra types.NamespacedName, may guard) diagnosecli.Share {
	return func(name string, read func(client.Reader) any) any {
		at := partOf{infra, name}
		one := p.enter(at)
		one.mu.Lock()
		defer one.mu.Unlock()
		if time.Now().Before(one.until) && may.all(one.needs) {
			return one.is
		}
		began := time.Now()
		noted := &noting{guard: may}
		is := read(noted)
		if noted.refused {
			return is // that is his alone
		}
		one.is, one.needs, one.until = is, noted.asked, began.Add(dueAfter(time.Since(began)))
		time.AfterFunc(idle, func() { p.leave(at, one) })
		return is
	}
}

func (p *parts) enter(at partOf) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[at] == nil {
		p.all[at] = &part{}
	}
	return p.all[at]
}

// leave forgets a part that was not read again. One that is being read at this moment is read again by the next viewer.
func (p *parts) leave(at partOf, one *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.mu.TryLock() {
		defer one.mu.Unlock()
		if time.Since(one.until) > 0 && p.all[at] == one {
			delete(p.all, at)
		}
	}
}

// noting is a guard that notes which rights it was asked for, and whether one of them was missing.
type noting struct {
	guard
	mu      sync.Mutex
	asked   []right
	refused bool
}

func (n *noting) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	n.note(n.needs("get", into, key.Namespace))
	return n.guard.Get(ctx, key, into, options...)
}

func (n *noting) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	n.note(n.needs("list", into, o.ApplyOptions(options).Namespace))
	return n.guard.List(ctx, into, options...)
}

func (n *noting) note(r right, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.refused = append(n.asked, r), n.refused || err != nil || !n.granted[r]
}
