package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const (
	fat     = 8 << 20 // bytes of an object; a page has one
	changes = 500     // a second
)

// Resources with objects that have more than a name.
const (
	requests = "certificatesigningrequests"
	nodes    = "nodes"
	services = "services"
)

// evil is the API server of a hosted cluster whose administrator wants the manager to serve nobody else.
type evil struct {
	trust []byte
	quiet bool
	// endless are the resources whose lists never end; fat are those with objects as large as an API server stores, and larger.
	endless, fat []string
	// changing is how often a second a resource changes; nil: every resource changes.
	changing map[string]int
	// services is their number, with the labels of Infra evil3; addresses is how many each has at first.
	services, addresses int
	// cards are its bridge's DPUs, of which the first joined are Nodes. waiting is how many requests, theirs and strangers', are there when
	// the manager starts.
	cards                      []int
	joined, strangers, waiting int

	signed    []certv1.CertificateSigningRequest // their names are set when they are sent
	newest    atomic.Int64                       // number of the last request
	answered  chan event                         // what became of requests that the manager approved
	each      atomic.Int64                       // addresses that each Service has now
	unwatched atomic.Bool                        // Services were listed, and not watched since

	said                     atomic.Int64 // bytes
	asked, told, read, taken atomic.Int64 // requests; changes; certificate requests that were read; approvals
}

// startEvil serves at an address, under a name.
func startEvil(ctx context.Context, address, name string, e *evil) error {
	certificate, key, err := envtest.SelfSigned(name)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	e.trust = certificate
	e.newest.Store(int64(e.waiting))
	e.each.Store(int64(e.addresses))
	e.answered = make(chan event, 1000)
	if !e.quiet {
		if err := e.sign(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: e.handler(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(discard{}, "", 0)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go server.ServeTLS(listener, "", "") //nolint:errcheck // it ends with us
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// handler of what the manager requests: some single objects, and otherwise collections.
func (e *evil) handler() http.Handler {
	const api = "/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*sayer, *http.Request){
		"GET /version":             func(out *sayer, _ *http.Request) { out.say(`{"major":"1","minor":"33"}`) },
		"GET " + api:               e.request,
		"PUT " + api + "/approval": e.approval,
		"GET /api/v1/nodes/{name}": e.node,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}": lease,
		"/": e.collection,
	} {
		mux.HandleFunc(pattern, func(to http.ResponseWriter, r *http.Request) {
			e.asked.Add(1)
			to.Header().Set("Content-Type", "application/json")
			answer(&sayer{to: to, said: &e.said}, r)
		})
	}
	return mux
}

// sayer writes until the other side is gone.
type sayer struct {
	to   http.ResponseWriter
	said *atomic.Int64
	gone bool
}

func (s *sayer) say(text string) {
	if s.gone {
		return
	}
	n, err := s.to.Write([]byte(text))
	s.said.Add(int64(n))
	s.gone = err != nil
}

func (s *sayer) flush() {
	if f, ok := s.to.(http.Flusher); ok {
		f.Flush()
	}
}

// refuse answers with an API server's error.
func (s *sayer) refuse(code int, reason metav1.StatusReason) {
	s.to.WriteHeader(code)
	s.say(text(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: "not today", Reason: reason, Code: int32(code),
	}))
}

// text is an object of our own as JSON.
func text(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func has(all []string, resource string) bool {
	for _, one := range all {
		if one == resource || one == "*" {
			return true
		}
	}
	return false
}

func (e *evil) collection(out *sayer, r *http.Request) {
	resource, watch := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], r.URL.Query().Get("watch") == "true"
	switch {
	case watch:
		e.watch(r.Context(), out, resource)
	case e.quiet:
		out.say(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		e.list(out, resource)
	}
}

func (e *evil) list(out *sayer, resource string) {
	more := ""
	if has(e.endless, resource) {
		more = "more"
	}
	out.say(fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[`, more))
	if has(e.fat, resource) {
		e.sayFat(out)
	} else {
		e.sayAll(out, resource)
	}
	out.say(`]}`)
}

func (e *evil) sayFat(out *sayer) {
	out.say(`{"metadata":{"name":"fat","resourceVersion":"1","annotations":{"a":"`)
	for range fat / (64 << 10) {
		out.say(strings.Repeat("x", 64<<10))
	}
	out.say(`"}}}`)
}

func (e *evil) sayAll(out *sayer, resource string) {
	count, object := 250, named
	switch {
	case resource == services:
		e.shrinks()
		count, object = e.services, e.service
	case resource == nodes && e.joined > 0:
		count, object = e.joined, e.nodeOf
	case resource == requests:
		count, object = e.waiting, e.pending
	}
	for i := range count {
		if i > 0 {
			out.say(",")
		}
		out.say(object(i, 1))
	}
}

// shrinks until the Services fit into what is kept of a hosted cluster: a list that no watch followed had too much.
func (e *evil) shrinks() {
	const fewest = 3
	if each := e.each.Load(); e.unwatched.Swap(true) && each > fewest {
		e.each.Store(max(fewest, each/4))
	}
}

// event on a watch.
type event struct{ kind, object string }

// watch sends changes until the other side is gone.
func (e *evil) watch(ctx context.Context, out *sayer, resource string) {
	out.flush()
	if resource == services {
		e.unwatched.Store(false)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	begun, rate := time.Now(), e.rate(resource)
	for n := 0; !out.gone; out.flush() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int(time.Since(begun).Seconds() * float64(rate)); n < due && !out.gone; n++ {
			next := e.next(resource, n)
			out.say(fmt.Sprintf(`{"type":%q,"object":%s}`, next.kind, next.object))
			e.told.Add(1)
		}
	}
}

func (e *evil) rate(resource string) int {
	switch {
	case e.quiet:
		return 0
	case e.changing == nil:
		return changes
	}
	return e.changing[resource]
}

// next is the nth change of a resource.
func (e *evil) next(resource string, n int) event {
	version := n + 2
	switch {
	case resource == services && e.services > 0:
		return event{"MODIFIED", e.service(n%e.services, version)}
	case resource == nodes && e.joined > 1:
		return event{"MODIFIED", e.nodeOf(1+n%(e.joined-1), version)}
	case resource == requests && len(e.signed) > 0:
		return e.nextRequest(version)
	}
	return event{"MODIFIED", named(n%250, version)}
}
