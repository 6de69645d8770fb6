package bounded

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// cache is what is kept of a collection, by namespace and name.
type cache[T any] struct {
	of  func(object []byte) (T, error)
	api *API

	mu      sync.Mutex
	objects map[string]T
	sizes   map[string]int // by name
	bytes   int            // sum of sizes
	half    bool           // it may have half of MostBytes only
}

func (c Collection[T]) cache(a *API) *cache[T] {
	return &cache[T]{of: c.Of, half: c.Over != nil, api: a, objects: map[string]T{}, sizes: map[string]int{}}
}

// put stores one object, or removes one that was deleted.
func (s *cache[T]) put(event watch.EventType, object []byte) error {
	var o Identified
	if json.Unmarshal(object, &o) != nil {
		return ErrNoKubernetes
	}
	name := o.Metadata.Namespace + "/" + o.Metadata.Name
	if event == watch.Deleted {
		return s.keep(name, nil, 0)
	}
	kept, err := s.of(object)
	if err != nil {
		return ErrNoKubernetes
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	size := len(name) + len(text)
	if more, has := any(kept).(interface{ Weight() int }); has {
		size += more.Weight()
	}
	return s.keep(name, &kept, size)
}

// keep replaces what is kept under a name by an object, or by nothing.
func (s *cache[T]) keep(name string, object *T, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := size - s.sizes[name]
	delete(s.objects, name)
	delete(s.sizes, name)
	if object != nil {
		s.objects[name], s.sizes[name] = *object, size
	}
	if err := s.api.Keeps(more); err != nil {
		return err
	}
	s.bytes += more
	if len(s.objects) > MostObjects || s.half && s.bytes > MostBytes/2 {
		return ErrTooMuch
	}
	return nil
}

// clear removes everything, and counts it as no longer kept.
func (s *cache[T]) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range s.sizes {
		_ = s.api.Keeps(-size)
	}
	clear(s.objects)
	clear(s.sizes)
}

func (s *cache[T]) inOrder() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []T
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		all = append(all, s.objects[name])
	}
	return all
}
