package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/parts"
)

// API servers come from addresses that no NetworkPolicy can select, and they show no certificate: any pod may post an AdmissionReview
// (docs/adr/0006-admission-stops-nobody.md). So the work that one address can cause is bounded, and the work that all can.
const (
	// largestReview bounds a body: an Infra with lists as long as its schema allows, its old version, and the managed fields of both. At
	// most mostLarge bodies above smallReview are in memory.
	largestReview = 2 << 20
	smallReview   = 64 << 10
	mostLarge     = 4
	// mostParts bounds the JSON values in a body: three bytes of JSON may cost a Go struct and a finding, some 500 bytes.
	mostParts = 30000
	// longestName bounds each name in a review, because names are logged (Kubernetes: UIDs have 36 characters).
	longestName = validation.DNS1123SubdomainMaxLength
	// atOnce and fromOne bound the reviews that are judged at once: of all addresses, and of one.
	atOnce, fromOne = 8, 4
	// inTurn bounds the waiting reviews of one address. An API server runs 200 writes at once (--max-mutating-requests-inflight).
	inTurn = 256
	// turn is how long a review may wait for its turn; the rest of patience is left for reading the cluster.
	turn = patience / 2
)

// gate lets the reviews of each address through in turn. One that may not wait gets an HTTP error: the API server treats that as a webhook
// that does not answer, and lets the write through.
type gate struct {
	next       http.Handler
	away       *away
	all, large chan struct{}

	mu   sync.Mutex
	from map[string]*queue
}

// queue is that of one address; it exists while the address has reviews.
type queue struct {
	slots, large chan struct{}
	users        int
}

func newGate(next http.Handler) *gate {
	return &gate{next: next, all: make(chan struct{}, atOnce), large: make(chan struct{}, mostLarge), from: map[string]*queue{}}
}

// ServeHTTP implements http.Handler. A body is read in its address's turn and judged in everybody's: a slow sender delays only himself.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address := hostOf(r.RemoteAddr)
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || media != "application/json" {
		g.away.counts(noReview, address)
		http.Error(w, "post an AdmissionReview as application/json", http.StatusUnsupportedMediaType)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	waiting, enough := context.WithTimeout(ctx, turn)
	defer enough()
	q := g.join(address)
	if q == nil {
		g.turnsAway(w, address, errFull)
		return
	}
	defer g.leave(address, q)
	if !enters(waiting, q.slots) {
		g.turnsAway(w, address, errBusy)
		return
	}
	defer exits(q.slots)
	body, turns, err := g.body(waiting, q, http.MaxBytesReader(w, r.Body, largestReview))
	for _, turn := range turns {
		defer exits(turn)
	}
	switch {
	case err == nil && !isReview(body):
		err = errNoReview
	case err == nil && !enters(waiting, g.all):
		err = errBusy
	}
	if err != nil {
		g.turnsAway(w, address, err)
		return
	}
	defer exits(g.all)
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.next.ServeHTTP(w, r)
}

var (
	errFull     = errors.New("too many reviews at once from this address: not judged")
	errBusy     = errors.New("too many reviews at once from this address, or from all: not judged")
	errNoReview = errors.New("this is no AdmissionReview of an API server's: not judged")
)

// turnsAway tells the client why, and an admin.
func (g *gate) turnsAway(w http.ResponseWriter, address string, because error) {
	code, c := http.StatusBadRequest, bodyIncomplete
	switch {
	case errors.Is(because, errFull):
		code, c = http.StatusTooManyRequests, tooManyWait
	case errors.Is(because, errBusy):
		code, c = http.StatusTooManyRequests, turnTooLate
	case errors.Is(because, errNoReview):
		c = noReview
	case errors.As(because, new(*http.MaxBytesError)):
		c = reviewTooLarge
	}
	g.away.counts(c, address)
	http.Error(w, because.Error(), code)
}

// body reads all of it. A large one takes a turn of its address and one of all; turns are those that it took, for the caller to give back.
func (g *gate) body(ctx context.Context, q *queue, from io.Reader) (text []byte, turns []chan struct{}, err error) {
	text, err = io.ReadAll(io.LimitReader(from, smallReview))
	if err != nil || len(text) < smallReview {
		return text, nil, err
	}
	for _, large := range []chan struct{}{q.large, g.large} {
		if !enters(ctx, large) {
			return nil, turns, errBusy
		}
		turns = append(turns, large)
	}
	rest, err := io.ReadAll(from)
	return append(text, rest...), turns, err
}

// isReview checks what no schema has judged. What an API server posts is JSON, has names within its own limits, and has no more parts than
// an object may have. Anything else would be parsed as YAML, whose aliases grow without bound.
func isReview(body []byte) bool {
	var review struct {
		Request struct {
			UID       string `json:"uid"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
			Kind      struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"kind"`
			Object    object `json:"object"`
			OldObject object `json:"oldObject"`
		} `json:"request"`
	}
	if !isObject(body) || parts.Of(body) > mostParts || json.Unmarshal(body, &review) != nil {
		return false
	}
	r := review.Request
	for _, text := range []string{r.UID, r.Name, r.Namespace, r.Kind.Group, r.Kind.Version, r.Kind.Kind} {
		if len(text) > longestName {
			return false
		}
	}
	return r.Object.is && (r.OldObject.is || !r.OldObject.there)
}

// object tells whether a review has an object; the content is not kept.
type object struct{ there, is bool }

// UnmarshalJSON implements json.Unmarshaler. It is not called for an absent field; null counts as absent.
func (o *object) UnmarshalJSON(text []byte) error {
	o.there, o.is = string(text) != "null", isObject(text)
	return nil
}

func isObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

func enters(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func exits(slots chan struct{}) { <-slots }

// join takes a place in the queue of an address; nil when the queue is full.
func (g *gate) join(address string) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.from[address]
	if q == nil {
		q = &queue{slots: make(chan struct{}, fromOne), large: make(chan struct{}, 1)}
		g.from[address] = q
	}
	if q.users == fromOne+inTurn {
		return nil
	}
	q.users++
	return q
}

// leave gives that place back.
func (g *gate) leave(address string, q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(g.from, address)
	}
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
