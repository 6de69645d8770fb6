package controller_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// faults stand between the manager and the API server.
type faults struct {
	mu      sync.Mutex
	refused string         // part of a path whose mutating calls fail
	count   map[string]int // mutating calls by whom they are for
	fail    map[string]fault
}

// fault of one call.
type fault struct {
	at   int  // the how manieth mutating call
	late bool // it is done, and the answer is lost
}

var errCut = errors.New("the line was cut")

// refuse calls that change what has a text in its path; an empty one refuses none.
func (f *faults) refuse(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = path
}

func (f *faults) before(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		fails, late := f.judge(r)
		if !fails {
			return next.RoundTrip(r)
		}
		if late {
			if answer, err := next.RoundTrip(r); err == nil {
				_ = answer.Body.Close()
			}
		}
		return nil, errCut
	})
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

func (f *faults) judge(r *http.Request) (fails, late bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") {
		return false, false
	}
	if f.refused != "" && strings.Contains(r.URL.Path, f.refused) {
		return true, false
	}
	who := numbered.FindStringSubmatch(r.URL.Path + " " + body(r))
	if who == nil || f.count == nil {
		return false, false
	}
	f.count[who[1]]++
	planned, set := f.fail[who[1]]
	return set && planned.at == f.count[who[1]], planned.late
}
