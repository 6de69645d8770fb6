package webhook

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func posted(from, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = from
	return r
}

// slow judges until it is let go.
type slow struct{ judged, free chan struct{} }

func newSlow() slow { return slow{make(chan struct{}, 1000), make(chan struct{})} }

func (s slow) ServeHTTP(http.ResponseWriter, *http.Request) {
	s.judged <- struct{}{}
	<-s.free
}

// asks posts one review, and says what was answered once it is.
func asks(g *gate, from string) <-chan int {
	code := make(chan int, 1)
	go func() {
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, posted(from, "{}"))
		code <- answer.Code
	}()
	return code
}

// Whoever posts many waits for himself: who posts one is judged at once.
func TestReviewsOfOneAddressWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		gate := newGate(judge)
		var many []<-chan int
		for range 3 * fromOne {
			many = append(many, asks(gate, "192.0.2.1:1"))
		}
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(fromOne))
		other := asks(gate, "192.0.2.2:1")
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(fromOne + 1))
		time.Sleep(turn)
		synctest.Wait()
		var tooMany int
		for _, code := range many {
			select {
			case c := <-code:
				g.Expect(c).To(Equal(http.StatusTooManyRequests))
				tooMany++
			default:
			}
		}
		g.Expect(tooMany).To(Equal(2*fromOne), "all whose turn did not come")
		g.Expect(judge.judged).To(HaveLen(fromOne + 1))
		close(judge.free)
		g.Expect(<-other).To(Equal(http.StatusOK))
		synctest.Wait()
		g.Expect(gate.from).To(BeEmpty())
	})
}

// However many addresses ask, so many reviews are in memory.
func TestReviewsOfAllAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		gate := newGate(judge)
		for i := range 100 {
			asks(gate, net.IPv4(192, 0, 2, byte(i)).String()+":1")
		}
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(atOnce))
		close(judge.free)
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(100), "each has its turn")
	})
}

func TestOfOneAddressOnlySoManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		gate := newGate(judge)
		for range fromOne + inTurn {
			asks(gate, "192.0.2.1:1")
		}
		synctest.Wait()
		began := time.Now()
		g.Expect(<-asks(gate, "192.0.2.1:1")).To(Equal(http.StatusTooManyRequests))
		g.Expect(time.Since(began)).To(BeZero())
		close(judge.free)
	})
}

func TestAReviewIsReadUpToItsBound(t *testing.T) {
	g := NewWithT(t)
	var read int
	gate := newGate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 1<<16)
		for {
			n, err := r.Body.Read(buffer)
			read += n
			if err != nil {
				return
			}
		}
	}))
	gate.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", strings.Repeat("x", 3*largestReview)))
	g.Expect(read).To(Equal(largestReview))
}

// Connections beyond the bound are closed, and counted again when they are.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	listener := &counted{Listener: inner, from: map[string]int{}}
	defer listener.Close()
	accepted := make(chan net.Conn, connectionsFromOne)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var last net.Conn
	for range connectionsFromOne {
		dial()
		last = <-accepted
	}
	extra := dial()
	g.Expect(extra.SetReadDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
	_, err = extra.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse(), "one too many is closed")
	last.Close()
	last.Close() // counts once
	dial()
	g.Eventually(accepted, 5*time.Second).Should(Receive())
	g.Expect(listener.all).To(Equal(connectionsFromOne))
}
