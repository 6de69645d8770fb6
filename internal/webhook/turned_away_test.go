package webhook

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/events"
)

// hearing returns an away, and what it reports to.
func hearing() (a *away, recorder *events.FakeRecorder, log *bytes.Buffer) {
	log, recorder = &bytes.Buffer{}, events.NewFakeRecorder(1000)
	return &away{log: logr.FromSlogHandler(slog.NewTextHandler(log, nil)), events: recorder, about: configuration}, recorder, log
}

// Each cause is counted, and reported once in ten minutes, with the address; those that came meanwhile are reported after that.
func TestWhoIsTurnedAwayIsToldOnce(t *testing.T) {
	for c, turned := range map[cause]func(g *gate){
		reviewTooLarge: func(g *gate) {
			g.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", strings.Repeat(" ", largestReview+1)))
		},
		noReview: func(g *gate) { g.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", "{}")) },
		bodyIncomplete: func(g *gate) {
			r := posted("192.0.2.1:1", "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))
			g.ServeHTTP(httptest.NewRecorder(), r)
		},
		turnTooLate: func(g *gate) {
			for range atOnce {
				g.all <- struct{}{}
			}
			g.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", review))
			for range atOnce {
				<-g.all
			}
		},
		tooManyWait: func(g *gate) {
			for range fromOne + inTurn {
				g.join("192.0.2.1")
			}
			g.ServeHTTP(httptest.NewRecorder(), posted("192.0.2.1:1", review))
			for range fromOne + inTurn {
				g.leave("192.0.2.1", g.from["192.0.2.1"])
			}
		},
	} {
		t.Run(string(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, gate := NewWithT(t), newGate(http.NotFoundHandler())
				told, recorder, log := hearing()
				gate.away = told
				before := countedAway(t, c)
				for range 100 {
					turned(gate)
				}
				g.Expect(countedAway(t, c) - before).To(BeEquivalentTo(100))
				g.Expect(recorder.Events).To(HaveLen(1))
				g.Expect(<-recorder.Events).To(And(HavePrefix("Warning ReviewsTurnedAway "), ContainSubstring(why[c]), ContainSubstring("the last from 192.0.2.1: "), ContainSubstring("NetworkPolicy")))
				g.Expect(strings.Count(log.String(), "\n")).To(Equal(1))
				g.Expect(log.String()).To(And(ContainSubstring("count=1 "), ContainSubstring("192.0.2.1"), ContainSubstring(string(c))))
				time.Sleep(tellEvery)
				turned(gate)
				g.Expect(recorder.Events).To(HaveLen(1))
				g.Expect(log.String()).To(ContainSubstring("count=100 "))
			})
		})
	}
}

// broken is a body that ends too soon.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("it is cut off") }

// Connections that are not accepted, and those closed to make room, are reported like reviews.
func TestConnectionsThatAreTurnedAwayAreTold(t *testing.T) {
	g := NewWithT(t)
	told, recorder, _ := hearing()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	l := newCounted(inner, told)
	l.begins["127.0.0.1"] = rate.NewLimiter(0, 0)
	ended := make(chan error, 1)
	go func() { _, err := l.Accept(); ended <- err }()
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(conn)
		g.Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(BeFalse())
		conn.Close()
	}
	g.Expect(l.Close()).To(Succeed())
	g.Expect(<-ended).To(HaveOccurred())
	g.Expect(recorder.Events).To(HaveLen(1))
	g.Expect(<-recorder.Events).To(And(ContainSubstring(why[tooManyConnections]), ContainSubstring("127.0.0.1")))
}

// The longest of them fits an event's note (events.k8s.io: 1024).
func TestEachCauseFitsAnEvent(t *testing.T) {
	for c := range why {
		told, recorder, _ := hearing()
		told.counts(c, "2001:db8:1111:2222:3333:4444:5555:6666")
		NewWithT(t).Expect(len(<-recorder.Events)).To(BeNumerically("<", 1024), "%s", c)
	}
}
