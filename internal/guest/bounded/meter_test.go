package bounded

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestOfLargeObjectsOneIsTakenInAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turn := NewWithT(t), make(chan struct{}, 1)
		object := strings.Repeat("x", 2*smallObject)
		begin := func() *meter {
			return &meter{ctx: t.Context(), body: io.NopCloser(strings.NewReader(object)), large: turn, ofAll: make(chan struct{}, 2)}
		}
		first, second := begin(), begin()
		read, err := io.ReadAll(first)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read).To(HaveLen(len(object)))
		var through atomic.Bool
		go func() {
			_, _ = io.ReadAll(second)
			through.Store(true)
		}()
		synctest.Wait()
		g.Expect(second.size).To(BeNumerically("<", smallObject+chunk), "as far as small ones go")
		g.Expect(through.Load()).To(BeFalse())
		first.close()
		synctest.Wait()
		g.Expect(through.Load()).To(BeTrue())
	})
}

// stalls sends some bytes, and then nothing until it is closed.
type stalls struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func (s *stalls) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	<-s.closed
	return 0, net.ErrClosed
}

func (s *stalls) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Servers that begin large objects and do not end them block no others for longer than largeIn.
func TestWhoStallsInALargeObjectGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ofAll := NewWithT(t), make(chan struct{}, 1)
		stalling := &meter{ctx: t.Context(), large: make(chan struct{}, 1), ofAll: ofAll,
			body: &stalls{Reader: strings.NewReader(strings.Repeat("x", 2*smallObject)), closed: make(chan struct{})}}
		ended := make(chan error, 1)
		go func() {
			_, err := io.ReadAll(stalling)
			stalling.close()
			ended <- err
		}()
		synctest.Wait()
		other := &meter{ctx: t.Context(), body: io.NopCloser(strings.NewReader(strings.Repeat("x", 2*smallObject))), large: make(chan struct{}, 1), ofAll: ofAll}
		begun := time.Now()
		_, err := io.ReadAll(other)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(begun)).To(Equal(largeIn))
		g.Expect(<-ended).To(MatchError(errSlow))
		other.close()
	})
}

func TestAnObjectIsReadUpToItsBound(t *testing.T) {
	m := &meter{ctx: t.Context(), body: io.NopCloser(strings.NewReader(strings.Repeat("x", 2*largestObject))), large: make(chan struct{}, 1), ofAll: make(chan struct{}, 1)}
	read, err := io.ReadAll(m)
	g := NewWithT(t)
	g.Expect(err).To(MatchError(ErrTooMuch))
	g.Expect(len(read)).To(BeNumerically("<", largestObject+chunk))
}
