package controller_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// faults stand between the manager and the API server.
type faults struct {
	mu      sync.Mutex
	refused string         // part of a path whose mutating calls fail
	hidden  string         // part of a path whose reading calls fail
	late    string         // part of a path whose watches tell late
	count   map[string]int // mutating calls that got through, by whom they are for
	of      map[string]fault
	wrote   map[string]bool // kinds of writes of bridge 00
	deadly  map[string]bool // kinds of writes before which a manager died
	died    chan struct{}   // a manager that nothing gets through from any more
}

// fault of one of them, by the how manieth of its mutating calls it is; 0 is none.
type fault struct {
	fails   int // it is not done
	unheard int // it is done, and the answer is lost
	kills   int // it is the first that the manager dies before; it also dies before each kind of write that none has died before
}

func newFaults() *faults { return &faults{died: make(chan struct{}, 1)} }

// since now, calls are counted.
func (f *faults) since(of map[string]fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count, f.of, f.wrote, f.deadly = map[string]int{}, of, map[string]bool{}, map[string]bool{}
}

// survived counts the kinds of writes that bridge 00 needed since then, and names those before which no manager died. How often it needed
// them depends on when managers died for others: each begins anew.
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

// refuse calls that change what has a text in its path; an empty one refuses none.
func (f *faults) refuse(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = path
}

// hide what has a text in its path from who reads; an empty one hides nothing.
func (f *faults) hide(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hidden = path
}

// delay what watches tell of what has a text in its path, those that begin from now on.
func (f *faults) delay(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = path
}

// delayed is the answer to a call, each piece of it a little later when it is a watch that tells late.
func (f *faults) delayed(r *http.Request, answer *http.Response) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late != "" && strings.Contains(r.URL.Path, f.late) && r.URL.Query().Has("watch") {
		answer.Body = late{answer.Body}
	}
	return answer
}

type late struct{ io.ReadCloser }

func (l late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	time.Sleep(300 * time.Millisecond)
	return n, err
}

// before the API server, for one manager: from its death on nothing of it gets there.
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

// numbered bridges and their DPUClusters: b07 and d07 in a path are for 07.
var numbered = regexp.MustCompile(`\b[bd](\d\d)\b`)

// body of a call that creates: it has the name.
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
	if !changes || who == nil || f.count == nil {
		return true, true
	}
	kind := r.Method + " " + numbered.ReplaceAllString(r.URL.Path, "NN")
	if who[1] == "00" {
		f.wrote[kind] = true
	}
	f.count[who[1]]++
	planned := f.of[who[1]]
	if f.count[who[1]] == planned.kills || planned.kills > 0 && !f.deadly[kind] {
		*dead = true
		f.deadly[kind] = true
		f.died <- struct{}{}
		return false, false
	}
	switch f.count[who[1]] {
	case planned.fails:
		return false, false
	case planned.unheard:
		return true, false
	}
	return true, true
}
