// Package share rations places among sources, such as clients by their address: what one does with its own, others do not notice.
package share

import "sync"

// Places are a number of places of which one source takes a part at most.
type Places[Source comparable] struct {
	all, one int

	mu    sync.Mutex
	taken int
	of    map[Source]int
}

// New makes places, and says how many of them one source may have.
func New[Source comparable](all, one int) *Places[Source] {
	return &Places[Source]{all: all, one: one, of: map[Source]int{}}
}

// Enter takes a place, if there is one for the source. Who entered has to leave.
func (p *Places[Source]) Enter(source Source) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.of[source] >= p.one {
		return false
	}
	p.taken++
	p.of[source]++
	return true
}

// Leave gives a place back.
func (p *Places[Source]) Leave(source Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[source]--; p.of[source] == 0 {
		delete(p.of, source)
	}
}

// Taken is how many places are taken.
func (p *Places[Source]) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
