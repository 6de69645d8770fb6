package controller_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// faults disturb calls between the manager and the API server.
type faults struct {
	mu      sync.Mutex
	refused string         // part of a path whose mutating calls fail
	hidden  string         // part of a path whose reading calls fail
	late    string         // part of a path whose watches are delayed
	count   map[string]int // mutating calls that got through, by bridge number
	of      map[string]fault
	wrote   map[string]bool // kinds of writes of bridge 00, and for all bridges
	deadly  map[string]bool // kinds of writes before which a manager died
	died    chan struct{}   // receives when a manager dies: no more of its calls get through
}

// fault says at which of its mutating calls a bridge is disturbed, and at every so many calls again; 0 is never.
type fault struct {
	fails   int // the call is not done
	unheard int // the call is done, and the answer is lost
	kills   int // the manager dies before the call; it also dies before each kind of write before which none has died
	every   int
}

// at says whether a bridge's call of this number is the nth, or so many later.
func (f fault) at(number, n int) bool {
	return n > 0 && (number == n || f.every > 0 && number > n && (number-n)%f.every == 0)
}

// lateWatches delays watches of all tests, as a busy API server does.
var lateWatches = flag.String("late", "", "a text in the paths of watches whose events come 0.3 s late")

// forAll is in place of a bridge's number.
const forAll = "all"

func newFaults() *faults { return &faults{died: make(chan struct{}, 1), late: *lateWatches} }

// since starts to count calls.
func (f *faults) since(of map[string]fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count, f.of, f.wrote, f.deadly = map[string]int{}, of, map[string]bool{}, map[string]bool{}
}

// survived counts the kinds of writes that bridge 00 has needed since then, and names those before which no manager died. How often it needed
// them depends on when managers died for others: each new one begins anew.
func (f *faults) survived() (kinds int, without []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind := range f.wrote {
		if !f.deadly[kind] {
			without = append(without, kind)
		}
	}
	return len(f.wrote), without
}

var errCut = errors.New("the line was cut")

// refuse fails mutating calls with a text in their path; an empty text refuses none.
func (f *faults) refuse(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = path
}

// hide fails reading calls with a text in their path; an empty text hides nothing.
func (f *faults) hide(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hidden = path
}

// delay delays the events of watches with a text in their path, if they begin from now on.
func (f *faults) delay(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = path
}

// delayed is the answer to a call; on a delayed watch each piece of it comes a little later.
func (f *faults) delayed(r *http.Request, answer *http.Response) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late != "" && strings.Contains(r.URL.Path, f.late) && r.URL.Query().Has("watch") {
		answer.Body = newLate(answer.Body)
	}
	return answer
}

// lateness is how much later a piece of a delayed watch comes. Those that follow it are under way meanwhile.
const lateness = 300 * time.Millisecond

// late is a body each piece of which comes later.
type late struct {
	io.ReadCloser
	pieces <-chan piece
	left   []byte
}

type piece struct {
	octets []byte
	err    error
	due    time.Time
}

func newLate(body io.ReadCloser) *late {
	pieces := make(chan piece, 10_000)
	go func() {
		defer close(pieces)
		for {
			octets := make([]byte, 32<<10)
			n, err := body.Read(octets)
			pieces <- piece{octets[:n], err, time.Now().Add(lateness)}
			if err != nil {
				return
			}
		}
	}()
	return &late{ReadCloser: body, pieces: pieces}
}

func (l *late) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		next, more := <-l.pieces
		if !more {
			return 0, io.EOF
		}
		time.Sleep(time.Until(next.due))
		if next.err != nil {
			return copy(p, next.octets), next.err
		}
		l.left = next.octets
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// before is one manager's way to the API server; after its death no call gets through.
func (f *faults) before() func(http.RoundTripper) http.RoundTripper {
	dead := false
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			passes, heard := f.judge(r, &dead)
			if !passes {
				return nil, errCut
			}
			answer, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			if !heard {
				_ = answer.Body.Close()
				return nil, errCut
			}
			return f.delayed(r, answer), nil
		})
	}
}

// numbered matches bridges and their DPUClusters: b07 and d07 in a path are for 07.
var numbered = regexp.MustCompile(`\b[bd](\d\d)\b`)

// shared matches what is written for all bridges, in the cache of images; managers die before each kind of it.
var shared = regexp.MustCompile(`/serviceaccounts/oooi-image-cache/token$|/imagestreams/`)

// digest matches the end of names that depend on what is in an object.
var digest = regexp.MustCompile(`-[0-9a-f]{10}$`)

// body is that of a call that creates an object: it contains the name.
func body(r *http.Request) string {
	if r.Method != http.MethodPost || r.Body == nil {
		return ""
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return string(text)
}

func (f *faults) judge(r *http.Request, dead *bool) (passes, heard bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
	if *dead || changes && f.refused != "" && strings.Contains(r.URL.Path, f.refused) {
		return false, false
	}
	if !changes && f.hidden != "" && strings.Contains(r.URL.Path, f.hidden) {
		return false, false
	}
	who := numbered.FindStringSubmatch(r.URL.Path + " " + body(r))
	ofAll := who == nil && shared.MatchString(r.URL.Path)
	if !changes || who == nil && !ofAll || f.count == nil {
		return true, true
	}
	if ofAll {
		who = []string{"", forAll}
	}
	kind := r.Method + " " + r.Header.Get("Content-Type") + " " + digest.ReplaceAllString(numbered.ReplaceAllString(r.URL.Path, "NN"), "")
	if who[1] == "00" || ofAll {
		f.wrote[kind] = true
	}
	f.count[who[1]]++
	number, planned := f.count[who[1]], f.of[who[1]]
	switch {
	case planned.at(number, planned.kills) || planned.kills > 0 && !f.deadly[kind]:
		*dead = true
		f.deadly[kind] = true
		f.died <- struct{}{}
		return false, false
	case planned.at(number, planned.fails):
		return false, false
	case planned.at(number, planned.unheard):
		return true, false
	}
	return true, true
}
