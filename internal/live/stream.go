package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cldmnky/oooi/internal/picture"
)

const (
	// judgedFor is how long a stream goes on without its viewer being judged again.
	judgedFor = time.Minute
	// writing is how long a browser may take to take what it is sent.
	writing = 10 * time.Second
	// again is how long a browser waits until it connects again.
	again = 200 * time.Millisecond
)

// stream sends server-sent events (HTML Living Standard, 9.2): each has the parts that have changed, as JSON.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, of shows) error {
	if !s.streams.Enter(of.viewer.Name) {
		return Refusal{http.StatusServiceUnavailable, "too many pages are live at a time; close one, then reload"}
	}
	defer s.streams.Leave(of.viewer.Name)
	ctx, cancel := context.WithTimeout(r.Context(), judgedFor)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Now().Add(s.writing)) }() // what ends the answer is written after this
	if err := s.event(w, control, fmt.Appendf(nil, "retry: %d\n\n", again.Milliseconds())); err != nil {
		return nil //nolint:nilerr // who has gone needs no answer
	}
	return s.changes(ctx, w, control, of, cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("have")))
}

// changes are sent to a browser that has a version of the document: all of it, or none, and then what changes.
func (s *Server) changes(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, of shows, has string) error {
	var old []picture.Section
	for number := 0; ; {
		now, next, err := of.feed.latest(ctx, number)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its time is over
		}
		number = next
		text, is := []byte(nil), error(nil)
		if errors.As(err, &Refusal{}) {
			return nil // the browser asks again, and is told
		} else if err != nil {
			text, is = message("event: unread\n", err.Error())
		} else if d := now.show(of.worker); d.Version() != has {
			text, is = message("id: "+d.Version()+"\n", picture.Changes(old, d.Sections))
			old, has = d.Sections, d.Version()
		} else {
			old = d.Sections
		}
		if is != nil {
			return is
		}
		if text != nil && s.event(w, control, text) != nil {
			return nil //nolint:nilerr // who has gone needs no answer
		}
	}
}

// message is an event whose data is JSON, which has no line break before its end. Its HTML is as it is: in an event, nothing reads it as such.
func message(fields string, data any) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(fields + "data: ")
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	err := to.Encode(data)
	text.WriteByte('\n')
	return text.Bytes(), err
}

// event writes one. Over HTTP/2 a deadline also ends a stream to which nothing is written, so none is left between two events.
func (s *Server) event(w http.ResponseWriter, control *http.ResponseController, text []byte) error {
	if err := control.SetWriteDeadline(time.Now().Add(s.writing)); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	return control.SetWriteDeadline(time.Time{})
}
