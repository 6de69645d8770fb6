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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// pageSize bounds what a hosted cluster can make us read at once; mostObjects and mostBytes, what we keep of one resource.
const (
	pageSize    = 250
	mostObjects = 5000
	mostBytes   = 4 << 20
)

// collection is what is read of one resource; of gives what is kept of an object.
type collection[T any] struct {
	path         string
	selects      url.Values // labelSelector, fieldSelector
	metadataOnly bool
	of           func(object []byte) (T, error)
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

// follow lists a collection, then watches it, and hands over all of it, in the order of names, at first and after every change.
// It ends with an error only.
func follow[T any](ctx context.Context, a *api, c collection[T], have func([]T)) error {
	s := c.shelf()
	return c.stream(ctx, a, s.put, func() { have(s.inOrder()) })
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
	accept := asJSON
	if c.metadataOnly {
		accept = asMetaList
	}
	limit := pageSize
	for from := ""; ; {
		text, err := a.do(ctx, request{verb: http.MethodGet, path: c.path, accept: accept, query: c.query("limit", strconv.Itoa(limit), "continue", from)})
		if errors.Is(err, errTooMuch) && limit > 1 {
			limit = max(1, limit/16) // a few objects as large as an API server stores must not hide the others
			continue
		}
		if err != nil {
			return "", err
		}
		var page struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return "", errNoKubernetes
		}
		for _, item := range page.Items {
			if err := take(watch.Added, item); err != nil {
				return "", err
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

var (
	// errNoKubernetes hides what a parser would quote of an answer.
	errNoKubernetes = errors.New("the answer is none of a Kubernetes API")
	errHasty        = errors.New("watches are ended at once")
	errTooMuch      = fmt.Errorf("there is more than is kept of a hosted cluster: %d objects of a kind, %d MiB", mostObjects, mostBytes>>20)
)

// watch follows changes from a version on, until the API server ends it, and tells to which version it got.
func (c collection[T]) watch(ctx context.Context, a *api, version string, take take, changed func()) (string, error) {
	accept := asJSON
	if c.metadataOnly {
		accept = asMetadata
	}
	body, err := a.open(ctx, request{
		verb: http.MethodGet, path: c.path, accept: accept,
		query: c.query("watch", "true", "allowWatchBookmarks", "true", "resourceVersion", version),
	})
	if err != nil {
		return version, err
	}
	defer body.Close()
	budget := &io.LimitedReader{R: body}
	for events := json.NewDecoder(budget); ; {
		budget.N = largestAnswer
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		switch err := events.Decode(&event); {
		case err != nil && ctx.Err() != nil:
			return version, ctx.Err()
		case errors.Is(err, io.EOF) && budget.N > 0:
			return version, nil
		case err != nil && isSyntax(err) || budget.N <= 0:
			return version, errNoKubernetes
		case err != nil:
			return version, err
		}
		if event.Type == watch.Error {
			return version, errorOf(event.Object)
		}
		if version, err = versionOf(event.Object); err != nil {
			return version, err
		}
		if event.Type == watch.Bookmark {
			continue
		}
		if err := take(event.Type, event.Object); err != nil {
			return version, err
		}
		changed()
	}
}

func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
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
	of      func(object []byte) (T, error)
	objects map[string]T
	sizes   map[string]int // of each as JSON: what it takes in memory is some times that
	size    int
}

func (c collection[T]) shelf() *shelf[T] {
	return &shelf[T]{of: c.of, objects: map[string]T{}, sizes: map[string]int{}}
}

// put takes one object in, or out.
func (s *shelf[T]) put(event watch.EventType, object []byte) error {
	var o identified
	if json.Unmarshal(object, &o) != nil {
		return errNoKubernetes
	}
	name := o.Metadata.Namespace + "/" + o.Metadata.Name
	s.size -= s.sizes[name]
	delete(s.objects, name)
	delete(s.sizes, name)
	if event == watch.Deleted {
		return nil
	}
	kept, err := s.of(object)
	if err != nil {
		return errNoKubernetes
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	s.objects[name], s.sizes[name] = kept, len(name)+len(text)
	if s.size += s.sizes[name]; s.size > mostBytes || len(s.objects) > mostObjects {
		return errTooMuch
	}
	return nil
}

func (s *shelf[T]) inOrder() []T {
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
