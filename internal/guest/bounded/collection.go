package bounded

import (
	"maps"
	"net/url"

	"k8s.io/apimachinery/pkg/watch"
)

// pageSize bounds what a hosted API server has to hold for us at once.
const pageSize = 250

// Collection is what is read of one resource; Of gives what is kept of an object.
type Collection[T any] struct {
	Path         string
	Selects      url.Values // labelSelector, fieldSelector
	MetadataOnly bool
	Of           func(object []byte) (T, error)
	Over         *T // handed over in place of a collection that needs more than half of what is kept; nil: one that is too large ends the visit
}

// query is what the collection selects, with more parameters; an empty value is left out.
func (c Collection[T]) query(more ...string) url.Values {
	q := url.Values{}
	maps.Copy(q, c.Selects)
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return q
}

// Labelled selects what a label selector does.
func Labelled(selector string) url.Values { return url.Values{"labelSelector": {selector}} }

// Named selects the objects of a name.
func Named(name string) url.Values { return url.Values{"fieldSelector": {"metadata.name=" + name}} }

// take is given each object of a collection, as added, and then each change.
type take func(of watch.EventType, object []byte) error
