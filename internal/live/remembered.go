package live

import (
	"maps"
	"sync"
	"time"
)

// mostRemembered is how many answers of the API server are known at a time.
const mostRemembered = 20000

// remembered are answers that are believed for a while.
type remembered[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]answer[V]
}

type answer[V any] struct {
	is    V
	until time.Time
}

func remember[K comparable, V any]() *remembered[K, V] {
	return &remembered[K, V]{all: map[K]answer[V]{}}
}

func (r *remembered[K, V]) get(of K) (is V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.all[of]
	if !known || time.Now().After(a.until) {
		return is, false
	}
	return a.is, true
}

func (r *remembered[K, V]) set(of K, is V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= mostRemembered {
		now := time.Now()
		maps.DeleteFunc(r.all, func(_ K, a answer[V]) bool { return now.After(a.until) })
	}
	if len(r.all) < mostRemembered {
		r.all[of] = answer[V]{is, time.Now().Add(believed)}
	}
}
