//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// The clients of a rehearsal.

// begin starts the clients; stop ends what they do.
func (r *rehearsal) begin() {
	r.Helper()
	ctx, stop := context.WithCancel(r.ctx)
	r.stop = stop
	r.Cleanup(func() { stop(); r.clients.Wait() })
	r.proxies = addressesOf(r.T, ctx, "soak", "proxy")
	for i := range soakClients {
		n := neighbour(r.T, r.ctx, fmt.Sprintf("soak%d", i), "br"+soakVLAN, "")
		r.clients.Go(func() {
			if err := n.Capture(ctx, r.journal.Frame); err != nil {
				r.Errorf("capturing: %v", err)
			}
		})
		var first scene.Lease
		must(r.T, scene.Until(ctx, "a lease", func(ctx context.Context) (err error) { first, err = n.Lease(ctx); return err }))
		must(r.T, n.Asks(first.Resolvers...))
		if i%2 == 0 {
			r.clients.Go(func() { r.leases(ctx, n, i) })
			continue
		}
		r.clients.Go(func() { r.boots(ctx, n, first.Address) })
		r.clients.Go(func() { r.asks(ctx, n) })
		r.clients.Go(func() { r.streams(ctx, n, net.JoinHostPort(r.proxies[i/2%len(r.proxies)], "6443")) })
	}
}

// boots asks for a lease again and again, as a machine does, and has the same address each time: connections end with it. Whether a server
// is away is its own matter: the journal has the replies.
func (r *rehearsal) boots(ctx context.Context, n *scene.Neighbour, address string) {
	for ctx.Err() == nil {
		if now, err := n.Lease(ctx); err == nil && now.Address != address {
			r.Errorf("%s a client that had %s was given %s", time.Now().Format(clock), address, now.Address)
			address = now.Address
		}
		passes(ctx, 5*time.Second)
	}
}

// leases as machines do that come and go: each gives its address back, and another of three takes its place.
func (r *rehearsal) leases(ctx context.Context, n *scene.Neighbour, client int) {
	for machine := 1; ctx.Err() == nil; passes(ctx, 3*time.Second) {
		if _, err := n.Lease(ctx); err != nil || n.Release(ctx) != nil {
			continue
		}
		if err := n.Becomes(ctx, fmt.Sprintf("02:00:00:62:%02x:%02x", client, machine%3)); err != nil && ctx.Err() == nil {
			r.Error(err)
		}
		machine++
	}
}

// asks for a name as resolv.conf(5) has it: 5 s for an answer, and once more.
func (r *rehearsal) asks(ctx context.Context, n *scene.Neighbour) {
	for ctx.Err() == nil {
		r.asking.RLock()
		out, err := n.Run(ctx, "dig", "+short", "+time=5", "+tries=2", "ignition-server-clusters-c1.apps.mgmt.example.com")
		r.asking.RUnlock()
		answers := strings.Fields(out)
		if ctx.Err() == nil && (err != nil || len(answers) == 0 || !slices.Contains(r.proxies, answers[len(answers)-1])) {
			r.Errorf("%s dig has %q: %v", time.Now().Format(clock), strings.TrimSpace(out), err)
		}
		r.asked.Add(1)
		passes(ctx, 500*time.Millisecond)
	}
}

// streams holds a connection to the API server and says when it is cut. After what may cut it, another is made.
func (r *rehearsal) streams(ctx context.Context, n *scene.Neighbour, address string) {
	var held *stream
	for ctx.Err() == nil {
		was := held
		if held == nil {
			held = dial(n, address)
		}
		if err := held.answers(); err != nil {
			if ctx.Err() == nil && was != nil && time.Now().UnixNano() > r.cutUntil.Load() {
				r.Errorf("%s a stream was cut: %v", time.Now().Format(clock), err)
			}
			held.close()
			held = nil
		}
		r.streamed.Add(1)
		passes(ctx, 500*time.Millisecond)
	}
	held.close()
}

// stream is one connection. http.Transport makes another in silence, and closes one whose request took more than 50 ms to be written.
type stream struct {
	conn    net.Conn
	replies *bufio.Reader
	err     error // of the dial
}

func dial(n *scene.Neighbour, address string) *stream {
	conn, err := n.Dial(address, 5*time.Second)
	if err != nil {
		return &stream{err: err}
	}
	conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	return &stream{conn: conn, replies: bufio.NewReader(conn)}
}

func (s *stream) answers() error {
	if s.err != nil {
		return s.err
	}
	err := s.conn.SetDeadline(time.Now().Add(streamAnswers))
	if err == nil {
		_, err = io.WriteString(s.conn, "GET /version HTTP/1.1\r\nHost: kubernetes\r\n\r\n")
	}
	if err != nil {
		return err
	}
	reply, err := http.ReadResponse(s.replies, nil)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	_, err = io.Copy(io.Discard, reply.Body)
	return err
}

func (s *stream) close() {
	if s != nil && s.conn != nil {
		_ = s.conn.Close() // it may be cut
	}
}
