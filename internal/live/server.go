// Package live serves the pages of package picture, and tells browsers of their changes: `oooi ui` and the manager do. It changes nothing,
// neither here nor in a cluster. All that a page loads is beside it.
//
// What several viewers see alike is read once for all of them, while anybody looks (feeds.go). A stream of changes (stream.go) ends after a
// minute; the browser connects again, and is judged again.
package live

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/picture"
	"github.com/cldmnky/oooi/internal/share"
)

// Reader reads what a page shows, and renders it.
type Reader func(context.Context) (Shown, error)

// Shown is a page that was read; with a worker's name, the page of that worker.
type Shown func(worker string) picture.Document

// Viewer is who asks.
type Viewer struct {
	// Name, of which there can be only so many streams.
	Name string
	// Sees has, of an Infra or, without a name, of the overview, what to read for this viewer; and a key that is the same for all viewers
	// who see the same of it. Its error may be a Refusal.
	Sees func(ctx context.Context, of types.NamespacedName) (key string, read Reader, err error)
}

// Refusal is an answer without a page.
type Refusal struct {
	Code int
	Says string
}

func (r Refusal) Error() string { return r.Says }

// The most that there can be at a time. A page of 500 workers is shared by all who see it alike; ten for viewers of other rights than each other take
// 20 MiB at most.
const (
	mostStreams  = 64
	mostPages    = 64 // that are being sent
	mostOfOne    = 16 // streams, and pages, of one viewer; a browser opens 6 connections to a host
	mostFeeds    = 12
	mostReadings = 2
)

// Server serves pages to whom Who lets in.
type Server struct {
	ctx     context.Context //nolint:containedctx // streams end with the process, not with a request
	who     func(*http.Request) (Viewer, error)
	feeds   *feeds
	streams *share.Places[string]
	pages   *share.Places[string]
	writing time.Duration
	mux     *http.ServeMux
}

// New serves until the context ends. who is asked for each request; its error may be a Refusal.
func New(ctx context.Context, who func(*http.Request) (Viewer, error)) *Server {
	s := &Server{ctx: ctx, who: who, feeds: newFeeds(ctx), streams: share.New[string](mostStreams, mostOfOne), pages: share.New[string](mostPages, mostOfOne), writing: writing, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /live.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(picture.Script) // who has gone needs no answer
	})
	for _, page := range []string{"/", "/infras/{namespace}/{name}", "/infras/{namespace}/{name}/workers/{worker}"} {
		end := ""
		if page == "/" {
			end = "{$}" // or it would be all paths
		}
		s.mux.HandleFunc("GET "+page+end, s.answer(s.page))
		s.mux.HandleFunc("GET "+join(page, "events"), s.answer(s.stream))
	}
	return s
}

func join(page, last string) string {
	if page == "/" {
		return page + last
	}
	return page + "/" + last
}

// styleIs is how a policy names a style that is in the page (CSP Level 3, 2.3.1 hash-source).
var styleIs = func() string {
	sum := sha256.Sum256(picture.Style)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// ServeHTTP adds what protects a page: it loads only what is beside it, is in no frame, is not kept, and tells nobody its address.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+styleIs+"; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	s.mux.ServeHTTP(w, r)
}

// shows is what a request is answered from: a feed that is released at the end, and the worker that it is about.
type shows struct {
	feed   *feed
	viewer Viewer
	of     types.NamespacedName
	worker string
}

func (s *Server) answer(with func(http.ResponseWriter, *http.Request, shows) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := s.answered(w, r, with)
		if err == nil || r.Context().Err() != nil {
			return
		}
		refusal := Refusal{Code: http.StatusBadGateway, Says: err.Error()}
		errors.As(err, &refusal)
		if refusal.Code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, refusal.Says, refusal.Code)
	}
}

func (s *Server) answered(w http.ResponseWriter, r *http.Request, with func(http.ResponseWriter, *http.Request, shows) error) error {
	viewer, err := s.who(r)
	if err != nil {
		return err
	}
	of := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	key, read, err := viewer.Sees(r.Context(), of)
	if err != nil {
		return err
	}
	f, err := s.feeds.enter(key, read)
	if err != nil {
		return err
	}
	defer s.feeds.leave(f)
	return with(w, r, shows{f, viewer, of, r.PathValue("worker")})
}

// page begins before its first reading has ended, which takes a second for 500 workers: a browser paints what it has. An error after that is
// in the page. The browser may leave a page unread: HTTP/2 carries 250 requests over a connection.
func (s *Server) page(w http.ResponseWriter, r *http.Request, of shows) error {
	if !s.pages.Enter(of.viewer.Name) {
		return Refusal{http.StatusServiceUnavailable, "too many pages are asked for at a time; try again in a few seconds"}
	}
	defer s.pages.Leave(of.viewer.Name)
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(s.writing)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	frame := picture.FrameOf(of.of.Namespace, of.of.Name, of.worker)
	if frame.Begin(w) != nil || control.Flush() != nil || control.SetWriteDeadline(time.Time{}) != nil { // while it is read, nothing is written: see event
		return nil // who has gone needs no answer
	}
	now, _, err := of.feed.latest(r.Context(), 0)
	document := picture.Document{}
	if err != nil {
		document = picture.Unread(frame, err.Error())
	} else {
		document = now.show(of.worker)
	}
	_ = control.SetWriteDeadline(time.Now().Add(s.writing)) // it was possible before
	_ = document.Rest(w)
	return nil
}
