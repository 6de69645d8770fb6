package bounded

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// fromAll limits the bytes that all connections of the process read.
var fromAll = rate.NewLimiter(readAtMost, readAtOnce)

// rationed is a connection with the limits of its hosted cluster and of all, for bytes that are read and for writes.
type rationed struct {
	net.Conn
	of *share
}

// Read implements net.Conn.
func (c rationed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), chunk)])
	c.of.read.Add(float64(n))
	now := time.Now()
	time.Sleep(max(c.of.bytes.ReserveN(now, n).DelayFrom(now), fromAll.ReserveN(now, n).DelayFrom(now)))
	return n, err
}

// Write implements net.Conn. To slow it also slows how fast we read a server that makes us answer without end, because net/http answers
// from the goroutine that reads.
func (c rationed) Write(p []byte) (int, error) {
	if wait := c.of.answers.Reserve().Delay(); wait > 0 {
		c.of.slows()
		time.Sleep(wait)
	}
	return c.Conn.Write(p)
}

// largeOfAll limits the large objects that all connections of the process read at once.
var largeOfAll = make(chan struct{}, largeAtOnce)

// meter reads objects one after the other, each within its limits.
type meter struct {
	ctx   context.Context
	body  io.ReadCloser
	large chan struct{} // full while the hosted cluster sends a large object
	ofAll chan struct{} // full while largeAtOnce of all do
	size  int           // bytes of the object so far
	turn  *time.Timer   // ends a large object that takes too long
	slow  atomic.Bool
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.size >= largestObject {
		return 0, errLarge
	}
	if m.size >= smallObject && m.turn == nil {
		if err := m.takesTurn(); err != nil {
			return 0, err
		}
	}
	n, err := m.body.Read(p[:min(len(p), chunk)])
	if m.size += n; err != nil && m.slow.Load() {
		err = errSlow
	}
	return n, err
}

func (m *meter) takesTurn() error {
	for i, turns := range []chan struct{}{m.large, m.ofAll} {
		select {
		case turns <- struct{}{}:
		case <-m.ctx.Done():
			if i > 0 {
				<-m.large
			}
			return m.ctx.Err()
		}
	}
	m.turn = time.AfterFunc(largeIn, func() {
		m.slow.Store(true)
		_ = m.body.Close() // the reader gets an error
	})
	return nil
}

// next begins another object.
func (m *meter) next() { m.size = 0 }

// done lets another large object be read.
func (m *meter) done() {
	if m.turn != nil {
		m.turn.Stop()
		m.turn = nil
		<-m.ofAll
		<-m.large
	}
}

func (m *meter) close() {
	m.done()
	_ = m.body.Close() // we need nothing more of it
}
