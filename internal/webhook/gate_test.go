package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// countedAway is the metric's value for a cause.
func countedAway(t *testing.T, c cause) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "oooi_webhook_turned_away_total" {
			for _, m := range f.Metric {
				if m.Label[0].GetValue() == string(c) {
					return m.Counter.GetValue()
				}
			}
		}
	}
	return -1
}

func posted(from, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = from
	return r
}

// slow judges nothing until it is freed.
type slow struct{ judged, free chan struct{} }

func newSlow() slow { return slow{make(chan struct{}, 1000), make(chan struct{})} }

func (s slow) ServeHTTP(http.ResponseWriter, *http.Request) {
	s.judged <- struct{}{}
	<-s.free
}

// asks posts one review and sends its answer's status.
func asks(g *gate, from string) <-chan int {
	code := make(chan int, 1)
	go func() {
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, posted(from, review))
		code <- answer.Code
	}()
	return code
}

// An address that posts many reviews makes only its own wait: another's is judged at once.
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
		g.Expect(countedAway(t, turnTooLate)).To(BeNumerically(">=", tooMany))
		g.Expect(tooMany).To(Equal(2*fromOne), "all whose turn did not come")
		g.Expect(judge.judged).To(HaveLen(fromOne + 1))
		close(judge.free)
		g.Expect(<-other).To(Equal(http.StatusOK))
		synctest.Wait()
		g.Expect(gate.from).To(BeEmpty())
	})
}

// looking takes as long as reads does, or until the request's context ends.
func looking(reads time.Duration) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(reads):
		case <-r.Context().Done():
		}
	})
}

// slowed posts twenty reviews of one address while other addresses flood, each with as many reviews as it may have. It returns how many
// took longer than longest, and how many were not judged.
func slowed(t *testing.T, flooding int, reads, longest time.Duration) (slow, unjudged int) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		gate, over := newGate(looking(reads)), make(chan struct{})
		var floods sync.WaitGroup
		for i := range flooding {
			for range fromOne + inTurn {
				floods.Go(func() {
					for {
						select {
						case <-over:
							return
						default:
							<-asks(gate, fmt.Sprintf("192.0.2.%d:1", i))
						}
					}
				})
			}
		}
		synctest.Wait()
		for range 20 {
			began := time.Now()
			if <-asks(gate, "198.51.100.1:1") != http.StatusOK {
				unjudged++
			}
			if time.Since(began) > longest {
				slow++
			}
		}
		close(over)
		floods.Wait()
	})
	return slow, unjudged
}

// A flood from one address slows nobody else's write; one from many, or reads that hang, slow a write by no more than its patience.
func TestAFloodSlowsNoWritePastItsPatience(t *testing.T) {
	g := NewWithT(t)
	const reads = 100 * time.Millisecond
	slow, unjudged := slowed(t, 1, reads, reads)
	g.Expect([]int{slow, unjudged}).To(Equal([]int{0, 0}), "by one address")
	slow, _ = slowed(t, 5, reads, patience)
	g.Expect(slow).To(BeZero(), "by five")
	slow, _ = slowed(t, 5, time.Hour, patience)
	g.Expect(slow).To(BeZero(), "by five, where reading hangs")
}

// The reviews in memory are bounded, however many addresses ask.
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

// What no schema has judged is not parsed: YAML's aliases grow without bound, and three bytes of JSON become a struct.
func TestOnlyWhatAnAPIServerPostsIsJudged(t *testing.T) {
	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"group":"g","version":"v1","kind":"K"},`
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"a review":               {review, http.StatusOK},
		"a large one":            {head + `"object":{"a":"` + text(largestReview-smallReview) + `"}}}`, http.StatusOK},
		"of a change":            {head + `"object":{},"oldObject":{}}}`, http.StatusOK},
		"of a new one":           {head + `"object":{},"oldObject":null}}`, http.StatusOK},
		"one that is too large":  {head + `"object":{"a":"` + text(largestReview) + `"}}}`, http.StatusBadRequest},
		"YAML":                   {"a: &a \"" + text(1<<20) + "\"\nb: [" + strings.Repeat("*a, ", 300) + "]\n", http.StatusBadRequest},
		"YAML behind a brace":    {"{a: &a x, b: *a}", http.StatusBadRequest},
		"an object that is none": {head + `"object":[[],[]]}}`, http.StatusBadRequest},
		"an old one":             {head + `"object":{},"oldObject":"a: &a x"}}`, http.StatusBadRequest},
		"none":                   {head + `"object":null}}`, http.StatusBadRequest},
		"too many parts":         {head + `"object":{"spec":[{}` + strings.Repeat(",{}", mostParts) + `]}}}`, http.StatusBadRequest},
		"a long UID":             {`{"request":{"uid":"` + text(longestName+1) + `","object":{}}}`, http.StatusBadRequest},
		"a long kind":            {`{"request":{"uid":"1","kind":{"kind":"` + text(longestName+1) + `"},"object":{}}}`, http.StatusBadRequest},
		"nothing":                {"", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			g, judged := NewWithT(t), ""
			gate := newGate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				text, err := io.ReadAll(r.Body)
				g.Expect(err).NotTo(HaveOccurred())
				judged = string(text)
			}))
			answer := httptest.NewRecorder()
			gate.ServeHTTP(answer, posted("192.0.2.1:1", c.body))
			g.Expect(answer.Code).To(Equal(c.code))
			if c.code == http.StatusOK {
				g.Expect(judged == c.body).To(BeTrue(), "whole")
			} else {
				g.Expect(judged).To(BeEmpty())
			}
			for _, slots := range []chan struct{}{gate.all, gate.large} {
				g.Expect(slots).To(BeEmpty())
			}
			g.Expect(gate.from).To(BeEmpty())
		})
	}
	for name, change := range map[string]func(r *http.Request){
		"another verb": func(r *http.Request) { r.Method = http.MethodGet },
		"another type": func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") },
	} {
		t.Run(name, func(t *testing.T) {
			r, answer := posted("192.0.2.1:1", review), httptest.NewRecorder()
			change(r)
			newGate(http.NotFoundHandler()).ServeHTTP(answer, r)
			NewWithT(t).Expect(answer.Code).To(Equal(http.StatusUnsupportedMediaType))
		})
	}
}

// A slow sender delays only requests from its own address.
func TestASlowBodyHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		close(judge.free)
		gate := newGate(judge)
		slow, sends := io.Pipe()
		for i := range 3 * atOnce {
			r := posted(fmt.Sprintf("192.0.2.%d:1", i), "")
			r.Body = slow
			go gate.ServeHTTP(httptest.NewRecorder(), r)
		}
		synctest.Wait()
		began := time.Now()
		g.Expect(<-asks(gate, "192.0.2.100:1")).To(Equal(http.StatusOK))
		g.Expect(time.Since(began)).To(BeZero())
		sends.Close()
		synctest.Wait()
	})
}

// large is a review above smallReview.
var large = strings.Replace(review, `"object":{}`, `"object":{"a":"`+strings.Repeat("x", smallReview)+`"}`, 1)

func TestOfLargeReviewsFewAreInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		gate := newGate(judge)
		for i := range 2 * mostLarge {
			go gate.ServeHTTP(httptest.NewRecorder(), posted(fmt.Sprintf("192.0.2.%d:1", i), large))
		}
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(mostLarge))
		asks(gate, "192.0.2.100:1")
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(mostLarge+1), "a small one has its turn")
		time.Sleep(turn)
		close(judge.free)
		synctest.Wait()
	})
}

// One address has one large review in memory, so it cannot keep another's waiting.
func TestOfOneAddressOneLargeReviewIsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, judge := NewWithT(t), newSlow()
		gate := newGate(judge)
		for range fromOne {
			go gate.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", large))
		}
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(1))
		go gate.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.2:1", large))
		synctest.Wait()
		g.Expect(judge.judged).To(HaveLen(2))
		time.Sleep(turn)
		close(judge.free)
		synctest.Wait()
	})
}

// started serves a handler as the manager would, with a certificate of its own.
func started(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	g := NewWithT(t)
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS()
	certificate := made.TLS.Certificates[0]
	made.Close()
	s := &server{
		address: fmt.Sprintf("127.0.0.1:%d", ports.Free(t)), handler: handler,
		certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() { stop(); g.Expect(<-ended).To(Succeed()) })
	g.Eventually(func() error { return s.started(nil) }, 5*time.Second).Should(Succeed())
	return s.address
}

func TestHalfARequestIsNotWaitedForLong(t *testing.T) {
	address := started(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
	for name, half := range map[string]string{
		"a head":           "POST /validate HTTP/1.1\r\nHost: x\r\n",
		"a body":           "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
		"nothing":          "",
		"too large a head": "POST /validate HTTP/1.1\r\nX: " + strings.Repeat("x", 2*largestHead),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			g.Expect(conn.ConnectionState().NegotiatedProtocol).To(Equal("http/1.1"))
			_, err = io.WriteString(conn, half)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conn.SetReadDeadline(time.Now().Add(10 * arrives))).To(Succeed())
			_, err = io.ReadAll(conn)
			g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse(), "the connection is closed")
		})
	}
}

// When there are too many connections, the oldest of the address that has most is closed: an address with few is never kept out by one with
// many.
func TestWhoHasManyConnectionsGivesWay(t *testing.T) {
	g, l := NewWithT(t), newCounted(nil, nil)
	made := func(address string) *counting {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		return &counting{Conn: ours, of: l, address: address}
	}
	add := func(c *counting) (bool, *counting) {
		taken, gives := l.add(c)
		if gives != nil {
			gives.Close()
		}
		return taken, gives
	}
	var first *counting
	for i := range connections {
		c := made(fmt.Sprintf("192.0.2.%d", i%5))
		if i == 0 {
			first = c
		}
		taken, gives := add(c)
		g.Expect(taken).To(BeTrue())
		g.Expect(gives).To(BeNil())
	}
	extra := made("192.0.2.0")
	l.drop(l.from["192.0.2.1"][0])
	taken, _ := add(extra) // now 192.0.2.0 has one more than the others
	g.Expect(taken).To(BeTrue())
	taken, gives := add(made("198.51.100.1"))
	g.Expect(taken).To(BeTrue())
	g.Expect(gives).To(BeIdenticalTo(first))
	taken, gives = add(made("192.0.2.2"))
	g.Expect(taken).To(BeFalse(), "it has as many as any")
	g.Expect(gives).To(BeNil())
	g.Expect(l.all).To(Equal(connections))
}

// begins says how many of so many connections an address may begin, each of which ends at once.
func begins(t *testing.T, l *counted, address string, connections int) (taken int) {
	t.Helper()
	for range connections {
		ours, theirs := net.Pipe()
		c := &counting{Conn: ours, of: l, address: address}
		if yes, _ := l.add(c); yes {
			taken++
		}
		c.Close()
		theirs.Close()
	}
	return taken
}

// An address that connects again and again gets few handshakes, even if it closes each connection. Another address is not affected, and the
// first regains its allowance once it waits.
func TestHandshakesOfOneAddressAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := NewWithT(t), newCounted(nil, nil)
		g.Expect(begins(t, l, "192.0.2.1", 5000)).To(Equal(beginsAtOnce))
		g.Expect(begins(t, l, "192.0.2.2", 2*connectionsFromOne)).To(Equal(2*connectionsFromOne), "an API server that starts anew")
		time.Sleep(time.Second)
		g.Expect(begins(t, l, "192.0.2.1", 5000)).To(Equal(beginsPerSecond))
		time.Sleep(time.Minute)
		g.Expect(begins(t, l, "192.0.2.1", 5000)).To(Equal(beginsAtOnce))
	})
}

// The number of remembered addresses is bounded. Those beyond it share one allowance, and get their own once others have waited.
func TestAddressesThatBeginAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := NewWithT(t), newCounted(nil, nil)
		for i := range remembered {
			g.Expect(begins(t, l, fmt.Sprint(i), 1)).To(Equal(1))
		}
		g.Expect(begins(t, l, "192.0.2.1", beginsAtOnce/2) + begins(t, l, "192.0.2.2", 5000)).To(Equal(beginsAtOnce))
		g.Expect(l.begins).To(HaveLen(remembered))
		time.Sleep(time.Second)
		g.Expect(begins(t, l, "192.0.2.1", 5000)).To(Equal(beginsAtOnce))
		g.Expect(begins(t, l, "192.0.2.2", 5000)).To(Equal(beginsAtOnce))
		g.Expect(l.begins).To(HaveLen(2))
	})
}

// A connection that comes too soon is closed before a byte of it is read, and is counted.
func TestAConnectionThatComesTooSoonIsClosed(t *testing.T) {
	g, before := NewWithT(t), countedAway(t, tooManyConnections)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	listener := newCounted(inner, nil)
	defer listener.Close()
	listener.begins["127.0.0.1"] = rate.NewLimiter(0, 1)
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	for range 2 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { conn.Close() })
	}
	g.Eventually(func() float64 { return countedAway(t, tooManyConnections) - before }, 5*time.Second).Should(BeNumerically("==", 1))
	g.Expect(accepted).To(HaveLen(1))
}

// Connections above the bound are closed; once one is closed, another fits.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	listener := newCounted(inner, nil)
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
