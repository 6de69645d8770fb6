package bounded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"
)

// List reads all of a collection, page by page.
func (c Collection[T]) List(ctx context.Context, a *API, take take) (version string, err error) {
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

// page reads one page, object by object.
func (c Collection[T]) page(ctx context.Context, a *API, from string, take func(object []byte) error) (listMeta, error) {
	accept := AsJSON
	if c.MetadataOnly {
		accept = asMetaList
	}
	m, err := a.meter(ctx, Request{Verb: http.MethodGet, Path: c.Path, Accept: accept, Query: c.query("limit", strconv.Itoa(pageSize), "continue", from)})
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
		err = ErrNoKubernetes
	}
	if err == nil { // read to the end, or else HTTP/1.1 needs another connection for the next page
		m.next()
		_, _ = io.Copy(io.Discard, io.LimitReader(m, chunk))
	}
	return about, err
}

// eachOf calls take with the items of a list one by one, as they arrive, and returns the list's metadata.
func eachOf(m *meter, take func(object []byte) error) (about listMeta, err error) {
	d := json.NewDecoder(m)
	if err := delimiter(d, '{'); err != nil {
		return about, err
	}
	for fields := 0; d.More(); fields++ {
		m.next()
		key, err := d.Token()
		if err != nil {
			return about, err
		}
		if fields == mostFields {
			return about, ErrNoKubernetes
		}
		switch key {
		case "metadata":
			err = d.Decode(&about)
		case "items":
			err = items(d, m, take)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return about, err
		}
	}
	return about, delimiter(d, '}')
}

// listMeta has the fields of metav1.ListMeta that we read.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

func items(d *json.Decoder, m *meter, take func(object []byte) error) error {
	begin, err := d.Token()
	if begin == nil || err != nil { // null: no items
		return err
	}
	if begin != json.Delim('[') {
		return ErrNoKubernetes
	}
	for d.More() {
		m.next()
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return err
		}
		if err := take(object); err != nil {
			return err
		}
	}
	return delimiter(d, ']')
}

func delimiter(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		return ErrNoKubernetes
	}
	return err
}

// isSyntax says whether an answer is not the JSON that an API server sends.
func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}
