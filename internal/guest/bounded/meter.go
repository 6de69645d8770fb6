package bounded

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// fromAll is the share in reading of all connections of the process.
var fromAll = rate.NewLimiter(readAtMost, readAtOnce)

// rationed is a connection that is read no faster, and answered no more often, than the shares of its hosted cluster and of all allow.
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

// Write implements net.Conn. A server that makes us answer without end is read no faster than we answer, because net/http answers in
// the goroutine that reads.
func (c rationed) Write(p []byte) (int, error) {
	if wait := c.of.answers.Reserve().Delay(); wait > 0 {
		c.of.slows()
		time.Sleep(wait)
	}
	return c.Conn.Write(p)
}

// largeOfAll are the turns of all connections of the process.
var largeOfAll = make(chan struct{}, largeAtOnce)

// meter reads objects one after the other, none beyond its bound.
type meter struct {
	ctx   context.Context
	body  io.ReadCloser
	large chan struct{} // whose is the turn on this connection to take in a large one
	ofAll chan struct{} // and of all connections
	size  int           // of the object, so far
	turn  *time.Timer   // ends it
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
		_ = m.body.Close() // whoever reads it hears so
	})
	return nil
}

// next object begins.
func (m *meter) next() { m.size = 0 }

// done lets the next large object in.
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
	_ = m.body.Close() // there is nothing more to say
}
