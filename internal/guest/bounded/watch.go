package bounded

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch watches from a resourceVersion until the API server ends it, and returns the last resourceVersion.
func (c Collection[T]) watch(ctx context.Context, a *API, version string, take take, changed func()) (string, error) {
	accept := AsJSON
	if c.MetadataOnly {
		accept = asMetadata
	}
	m, err := a.meter(ctx, Request{
		Verb: http.MethodGet, Path: c.Path, Accept: accept,
		Query: c.query("watch", "true", "allowWatchBookmarks", "true", "resourceVersion", version),
	})
	if err != nil {
		return version, err
	}
	defer m.close()
	for events := json.NewDecoder(m); ; {
		m.next()
		var event event
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF) && ctx.Err() == nil:
			return version, nil
		case err != nil:
			return version, undecoded(ctx, err)
		}
		if err := a.to.paced(ctx); err != nil {
			return version, err
		}
		if event.Type == watch.Error {
			return version, errorOf(a.bounded(event.Object))
		}
		if version, err = versionOf(event.Object); err != nil {
			return version, err
		}
		if event.Type != watch.Bookmark {
			if err := take(event.Type, a.bounded(event.Object)); err != nil {
				return version, err
			}
			changed()
		}
		if m.turn != nil { // after a large object, drop the decoder's buffer, which is as large
			events = json.NewDecoder(io.MultiReader(events.Buffered(), m))
			m.done()
		}
	}
}

// event is one of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// undecoded is why an event was not decoded.
func undecoded(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isSyntax(err):
		return ErrNoKubernetes
	}
	return err
}

func versionOf(object []byte) (string, error) {
	var o Identified
	if json.Unmarshal(object, &o) != nil || o.Metadata.ResourceVersion == "" {
		return "", ErrNoKubernetes
	}
	return o.Metadata.ResourceVersion, nil
}

func errorOf(object []byte) error {
	var status metav1.Status
	if json.Unmarshal(object, &status) != nil {
		return ErrNoKubernetes
	}
	return &apierrors.StatusError{ErrStatus: status}
}
