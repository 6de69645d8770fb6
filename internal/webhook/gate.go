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

// API servers come from addresses that no NetworkPolicy selects, and show no certificate: any pod may post an AdmissionReview
// (docs/adr/0006-admission-stops-nobody.md). So what one address can have us do is bounded, and what all of them can.
const (
	// largestReview is a body: an Infra whose lists are as long as its schema lets them, beside what it was, with who wrote each field.
	// Of those beyond smallReview few are in memory.
	largestReview = 2 << 20
	smallReview   = 64 << 10
	mostLarge     = 4
	// mostParts of a body: each may cost as much as a Go struct and a finding, some 500 bytes for three of JSON.
	mostParts = 30000
	// longestName of what a review names, which is logged (Kubernetes: UIDs have 36 characters).
	longestName = validation.DNS1123SubdomainMaxLength
	// atOnce and fromOne are reviews that are judged at once, of all and of one address.
	atOnce, fromOne = 8, 4
	// inTurn are reviews of one address that wait for theirs. An API server writes 200 changing requests at once (--max-mutating-requests-inflight).
	inTurn = 256
	// turn is how long one waits; the rest of its patience is to look around in.
	turn = patience / 2
)

// gate lets reviews of many addresses through in turn. Who may not wait hears so, which to an API server is a webhook that does not
// answer, and stops nobody.
type gate struct {
	next       http.Handler
	away       *away
	all, large chan struct{}

	mu   sync.Mutex
	from map[string]*queue
}

// queue of one address, while it has reviews.
type queue struct {
	slots, large chan struct{}
	users        int
}

func newGate(next http.Handler) *gate {
	return &gate{next: next, all: make(chan struct{}, atOnce), large: make(chan struct{}, mostLarge), from: map[string]*queue{}}
}

// ServeHTTP implements http.Handler. A body is read in its address's turn, and judged in that of all: who sends slowly waits for himself.
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

// turnsAway says why to who asks, and to an admin.
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

// body is read whole. A large one has its turn among those of its address, and of all: turns are those that were taken.
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

// isReview looks at what no schema has judged: what an API server posts is JSON, has names that it takes, and no more parts than an
// object may have. All else would be parsed as YAML, whose aliases grow without a bound.
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

// object of a review; what it holds is not kept.
type object struct{ there, is bool }

// UnmarshalJSON implements json.Unmarshaler. It is not called for what is not there; null is not there either.
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

// join the queue of an address; nil when it is full.
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

// leave a queue that was joined.
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
