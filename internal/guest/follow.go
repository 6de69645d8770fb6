package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// pageSize bounds what a hosted API server has to hold for us at once.
const pageSize = 250

// collection is what is read of one resource; of gives what is kept of an object.
type collection[T any] struct {
	path         string
	selects      url.Values // labelSelector, fieldSelector
	metadataOnly bool
	of           func(object []byte) (T, error)
	over         *T // stands for a collection with more than is kept, which else ends the visit: more than half of what is kept of all
}

// identified is what every object has.
type identified struct {
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// shortest watch that an API server may end in peace: none ends them sooner than in minutes, and one that does so at once would
// have us ask for ever.
const shortest = time.Second

// follow lists a collection, then watches it, and hands over all of it, in the order of names, at first and after changes, not more often
// than tellEvery. It ends with an error only.
func follow[T any](ctx context.Context, a *api, c collection[T], have func([]T)) error {
	for {
		err := c.follow(ctx, a, have)
		if c.over == nil || !errors.Is(err, errTooMuch) || ctx.Err() != nil {
			return err
		}
		have([]T{*c.over})
		pause(ctx, crowdedPause) // it may have been made smaller
	}
}

func (c collection[T]) follow(ctx context.Context, a *api, have func([]T)) error {
	s := c.shelf(a)
	defer s.clear()
	news := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.stream(ctx, a, s.put, func() { poke(news) }) })
	group.Go(func() error {
		tell(ctx, news, func() { have(s.inOrder()) })
		return nil
	})
	return group.Wait()
}

// take is given each object of a collection, as added, and then each change.
type take func(event watch.EventType, object []byte) error

// stream lists a collection, then watches it: a watch that the API server closes in peace goes on where it was. When the list is
// whole, and after each change, it says so.
func (c collection[T]) stream(ctx context.Context, a *api, take take, changed func()) error {
	version, err := c.list(ctx, a, take)
	if err == nil {
		changed()
	}
	for err == nil {
		begun := time.Now()
		version, err = c.watch(ctx, a, version, take, changed)
		if err == nil && time.Since(begun) < shortest {
			err = errHasty
		}
	}
	return fmt.Errorf("%s: %w", c.path, err)
}

// list reads all of a collection, page by page.
func (c collection[T]) list(ctx context.Context, a *api, take take) (version string, err error) {
	listing, cancel := context.WithTimeout(ctx, listedIn)
	defer cancel()
	from := ""
	for range mostPages {
		about, err := c.page(listing, a, from, func(object []byte) error { return take(watch.Added, a.bounded(object)) })
		if listing.Err() != nil && ctx.Err() == nil {
			return "", fmt.Errorf("%w: %w", errEndless, listing.Err())
		}
		if err != nil || about.Continue == "" {
			return about.ResourceVersion, err
		}
		from = about.Continue
	}
	return "", errPages
}

// page reads one, object by object.
func (c collection[T]) page(ctx context.Context, a *api, from string, take func(object []byte) error) (listMeta, error) {
	accept := asJSON
	if c.metadataOnly {
		accept = asMetaList
	}
	m, err := a.meter(ctx, request{verb: http.MethodGet, path: c.path, accept: accept, query: c.query("limit", strconv.Itoa(pageSize), "continue", from)})
	if err != nil {
		return listMeta{}, err
	}
	defer m.close()
	about, err := eachOf(m, func(object []byte) error {
		if err := a.to.paced(ctx); err != nil {
			return err
		}
		return take(object)
	})
	if isSyntax(err) {
		err = errNoKubernetes
	}
	if err == nil { // to its end, or HTTP/1.1 would need another connection for the next
		m.next()
		_, _ = io.Copy(io.Discard, io.LimitReader(m, chunk))
	}
	return about, err
}

var (
	// errNoKubernetes hides what a parser would quote of an answer.
	errNoKubernetes = errors.New("the answer is none of a Kubernetes API")
	errHasty        = errors.New("watches are ended at once")
)

// watch follows changes from a version on, until the API server ends it, and tells to which version it got.
func (c collection[T]) watch(ctx context.Context, a *api, version string, take take, changed func()) (string, error) {
	accept := asJSON
	if c.metadataOnly {
		accept = asMetadata
	}
	m, err := a.meter(ctx, request{
		verb: http.MethodGet, path: c.path, accept: accept,
		query: c.query("watch", "true", "allowWatchBookmarks", "true", "resourceVersion", version),
	})
	if err != nil {
		return version, err
	}
	defer m.close()
	for events := json.NewDecoder(m); ; {
		m.next()
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		switch err := events.Decode(&event); {
		case err != nil && ctx.Err() != nil:
			return version, ctx.Err()
		case errors.Is(err, io.EOF):
			return version, nil
		case isSyntax(err):
			return version, errNoKubernetes
		case err != nil:
			return version, err
		}
		if event.Type == watch.Error {
			return version, errorOf(a.bounded(event.Object))
		}
		if version, err = versionOf(event.Object); err != nil {
			return version, err
		}
		if event.Type != watch.Bookmark {
			if err := a.to.paced(ctx); err != nil {
				return version, err
			}
			if err := take(event.Type, a.bounded(event.Object)); err != nil {
				return version, err
			}
			changed()
		}
		if m.turn != nil { // and the decoder's buffer, which is as large, goes with it
			events = json.NewDecoder(io.MultiReader(events.Buffered(), m))
			m.done()
		}
	}
}

func versionOf(object []byte) (string, error) {
	var o identified
	if json.Unmarshal(object, &o) != nil || o.Metadata.ResourceVersion == "" {
		return "", errNoKubernetes
	}
	return o.Metadata.ResourceVersion, nil
}

func errorOf(object []byte) error {
	var status metav1.Status
	if json.Unmarshal(object, &status) != nil {
		return errNoKubernetes
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// shelf is what is kept of a collection, by namespace and name.
type shelf[T any] struct {
	of  func(object []byte) (T, error)
	api *api

	mu      sync.Mutex
	objects map[string]T
	sizes   map[string]int // of each, and
	bytes   int            // of all
	half    bool           // it may have half of what is kept of the hosted cluster
}

func (c collection[T]) shelf(a *api) *shelf[T] {
	return &shelf[T]{of: c.of, half: c.over != nil, api: a, objects: map[string]T{}, sizes: map[string]int{}}
}

// put takes one object in, or out.
func (s *shelf[T]) put(event watch.EventType, object []byte) error {
	var o identified
	if json.Unmarshal(object, &o) != nil {
		return errNoKubernetes
	}
	name := o.Metadata.Namespace + "/" + o.Metadata.Name
	if event == watch.Deleted {
		return s.keep(name, nil, 0)
	}
	kept, err := s.of(object)
	if err != nil {
		return errNoKubernetes
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	size := len(name) + len(text)
	if more, has := any(kept).(interface{ weight() int }); has {
		size += more.weight()
	}
	return s.keep(name, &kept, size)
}

// keep one object, or none, in place of what was kept under its name.
func (s *shelf[T]) keep(name string, object *T, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := size - s.sizes[name]
	delete(s.objects, name)
	delete(s.sizes, name)
	if object != nil {
		s.objects[name], s.sizes[name] = *object, size
	}
	if err := s.api.keeps(more); err != nil {
		return err
	}
	s.bytes += more
	if len(s.objects) > mostObjects || s.half && s.bytes > mostBytes/2 {
		return errTooMuch
	}
	return nil
}

// clear gives back what is kept.
func (s *shelf[T]) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range s.sizes {
		_ = s.api.keeps(-size)
	}
	clear(s.objects)
	clear(s.sizes)
}

func (s *shelf[T]) inOrder() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []T
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		all = append(all, s.objects[name])
	}
	return all
}

// query is what the collection selects, with more parameters; an empty value is left out.
func (c collection[T]) query(more ...string) url.Values {
	q := url.Values{}
	maps.Copy(q, c.selects)
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return q
}
