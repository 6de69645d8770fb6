package bounded

import (
	"sync"
)

// allotment is what is kept for one connection.
type allotment struct {
	to   *share
	kept int // bytes; guarded by room
}

// room is the bytes that are kept of all hosted clusters: their JSON, and for addresses more.
type room struct {
	mu  sync.Mutex
	all int
	of  map[*share]int
}

var kept = &room{of: map[*share]int{}}

// take counts more (or fewer) bytes for a hosted cluster. At the limit for all, it fails for those with more than their share.
func (r *room) take(h *allotment, more int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(h, more)
	if more <= 0 {
		return nil
	}
	switch has := r.of[h.to]; {
	case has > MostBytes:
		return ErrTooMuch
	case r.all > mostOfAll && has > mostOfAll/len(r.of):
		return errShare
	}
	return nil
}

func (r *room) add(h *allotment, more int) {
	h.kept += more
	r.all += more
	if r.of[h.to] += more; r.of[h.to] == 0 {
		delete(r.of, h.to)
	}
}

// leave forgets what is kept for a connection.
func (r *room) leave(h *allotment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(h, -h.kept)
}
