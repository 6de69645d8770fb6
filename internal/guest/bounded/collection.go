package bounded

import (
	"maps"
	"net/url"

	"k8s.io/apimachinery/pkg/watch"
)

// pageSize limits what a hosted API server has to buffer for us at once.
const pageSize = 250

// Collection says what to read of one resource; Of returns what to keep of an object.
type Collection[T any] struct {
	Path         string
	Selects      url.Values // labelSelector, fieldSelector
	MetadataOnly bool
	Of           func(object []byte) (T, error)
	Over         *T // stands for a collection that needs more than half of MostBytes; nil: a collection that is too large ends the visit
}

// query is the collection's selector with more parameters, without those of empty value.
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

// Labelled selects by a label selector.
func Labelled(selector string) url.Values { return url.Values{"labelSelector": {selector}} }

// Named selects objects by name.
func Named(name string) url.Values { return url.Values{"fieldSelector": {"metadata.name=" + name}} }

// take gets each object of a collection as an added one, and then each change.
type take func(of watch.EventType, object []byte) error
