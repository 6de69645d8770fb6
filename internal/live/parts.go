package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/diagnosecli"
)

// parts are what is large of an Infra, as it was read last: viewers with other rights than each other's see other pages, of the same workers.
type parts struct {
	idle time.Duration // how long one is kept, at least

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

func newParts() *parts { return &parts{idle: idle, all: map[partOf]*part{}} }

// of an Infra, for who has these rights.
func (p *parts) of(infra types.NamespacedName, may guard) diagnosecli.Share {
	return func(name string, read func(client.Reader) any) any {
		at := partOf{infra, name}
		one := p.enter(at)
		is, until, anew := one.shown(may, read)
		if anew { // from now on, since leave does not wait for who reads it
			time.AfterFunc(max(p.idle, time.Until(until)), func() { p.leave(at, one) })
		}
		return is
	}
}

// shown says also until when others may see it, and whether it was read anew.
func (one *part) shown(may guard, read func(client.Reader) any) (is any, until time.Time, anew bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if time.Now().Before(one.until) && may.all(one.needs) {
		return one.is, one.until, false
	}
	began := time.Now()
	noted := &noting{guard: may}
	is = read(noted)
	if !noted.failed { // else it is his alone
		one.is, one.needs, one.until = is, noted.asked, began.Add(dueAfter(time.Since(began)))
	}
	return is, one.until, true
}

func (p *parts) enter(at partOf) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[at] == nil {
		p.all[at] = &part{}
	}
	return p.all[at]
}

// leave forgets a part that was not read again. Who reads one at this moment comes back to that.
func (p *parts) leave(at partOf, one *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.mu.TryLock() {
		defer one.mu.Unlock()
		if !time.Now().Before(one.until) && p.all[at] == one {
			delete(p.all, at)
		}
	}
}

// noting is a guard that notes which rights it was asked for, and whether one of them was missing or a reading failed.
type noting struct {
	guard
	mu     sync.Mutex
	asked  []right
	failed bool
}

func (n *noting) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r, judged := n.needs("get", into, key.Namespace)
	err := n.guard.Get(ctx, key, into, options...)
	n.note(r, errors.Join(judged, client.IgnoreNotFound(err)))
	return err
}

func (n *noting) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	r, judged := n.needs("list", into, o.ApplyOptions(options).Namespace)
	err := n.guard.List(ctx, into, options...)
	n.note(r, errors.Join(judged, err))
	return err
}

func (n *noting) note(r right, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.failed = append(n.asked, r), n.failed || err != nil || !n.granted[r]
}
