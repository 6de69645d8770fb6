package bounded

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// hostedAPI is a hosted API in memory; after the text of an answer, a watch stays open.
func hostedAPI(answer func(r *http.Request) string) *API {
	return &API{server: &url.URL{Scheme: "https", Host: "hosted"}, allotment: allotment{to: newShare("hosted")}, client: &http.Client{
		Transport: answering(func(r *http.Request) (*http.Response, error) {
			body := io.Reader(strings.NewReader(answer(r)))
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			if r.URL.Query().Has("watch") {
				body = io.MultiReader(body, stays{r.Context()})
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		}),
	}}
}

// things are kept by their names.
var things = Collection[string]{Path: "/api/v1/things", Of: func(object []byte) (string, error) {
	o, err := Whole[Identified](object)
	return o.Metadata.Name, err
}}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stays sends nothing until the request ends.
type stays struct{ ctx context.Context }

func (s stays) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
