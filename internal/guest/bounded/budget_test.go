package bounded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

// hostedAPI answers in memory, as a hosted cluster's API does: what for a list, and what for a watch of a path.
func hostedAPI(answer func(r *http.Request) string) *API {
	return &API{server: &url.URL{Scheme: "https", Host: "hosted"}, holding: holding{to: newShare("hosted")}, client: &http.Client{
		Transport: answering(func(r *http.Request) (*http.Response, error) {
			body := io.Reader(strings.NewReader(answer(r)))
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			if r.URL.Query().Has("watch") {
				body = io.MultiReader(body, stays{r.Context()})
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		}),
	}}
}

// things are kept by their names.
var things = Collection[string]{Path: "/api/v1/things", Of: func(object []byte) (string, error) {
	o, err := Whole[Identified](object)
	return o.Metadata.Name, err
}}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stays has nothing more to say, until the request ends.
type stays struct{ ctx context.Context }

func (s stays) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// noisy is a connection to a server that sends as fast as it is read.
func noisy(of *share) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		for noise := make([]byte, 64<<10); ; time.Sleep(time.Millisecond) {
			if _, err := theirs.Write(noise); err != nil {
				return
			}
		}
	}()
	return rationed{ours, of}
}

// reads a connection until the end.
func reads(ctx context.Context, conn net.Conn, sum *atomic.Int64) {
	for buffer := make([]byte, 64<<10); ctx.Err() == nil; {
		n, _ := conn.Read(buffer)
		sum.Add(int64(n))
	}
	conn.Close()
}

func ofOne() *share { return newShare("noisy") }

// Whatever some hosted clusters send, another is read as if they were not there, and all together no faster than their bound.
func TestReadingIsSharedByAllConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var flood atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		for range 10 {
			go reads(ctx, noisy(ofOne()), &flood)
		}
		time.Sleep(2 * time.Second)
		good, began := noisy(ofOne()), time.Now()
		_, err := io.ReadFull(good, make([]byte, 4<<10))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(began)).To(BeNumerically("<", 100*time.Millisecond))
		g.Expect(flood.Load()).To(BeNumerically("<=", 3*readAtMost))
		good.Close()
		stop()
		time.Sleep(time.Second) // all have left, and the share is whole again
	})
}

// bytesRead of a server, as the metrics tell; less than none where they tell nothing of it.
func bytesRead(t *testing.T, server string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "oooi_hosted_cluster_read_bytes_total" && m.Label[0].GetValue() == server {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// However many connections its server has us open.
func TestOneHostedClusterHasHalfOfWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flood atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		share := ofOne()
		for range 10 {
			go reads(ctx, noisy(share), &flood)
		}
		time.Sleep(10 * time.Second)
		NewWithT(t).Expect(flood.Load()).To(BeNumerically("<=", 10*readOfOne+2*readAtOnce))
		stop()
		time.Sleep(time.Second)
	})
}

func TestConnectionsAreRationed(t *testing.T) {
	g := NewWithT(t)
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	connected := func() *API {
		a, err := Connect("https://hosted:6443", kubeconfig.Access{}, func(context.Context, string, string) (net.Conn, error) { return ours, nil })
		g.Expect(err).NotTo(HaveOccurred())
		return a
	}
	a, another := connected(), connected()
	g.Expect(another.to).To(BeIdenticalTo(a.to), "an Infra's and a bridge's have one share")
	conn, err := a.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn).To(BeAssignableToTypeOf(rationed{}))
	go func() { _, _ = theirs.Write(make([]byte, 100)) }()
	_, err = io.ReadFull(conn, make([]byte, 100))
	g.Expect(err).NotTo(HaveOccurred())
	a.Close()
	a.Close()
	g.Expect(bytesRead(t, "hosted:6443")).To(BeNumerically("==", 100))
	another.Close()
	g.Expect(bytesRead(t, "hosted:6443")).To(BeNumerically("<", 0), "nobody reads there any more")
}

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

// stalls sends some, and then nothing, until it is closed.
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

// Servers that begin large objects and do not end them hold up nobody else's for longer than largeIn.
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

// A struct of Go's may take a hundred times the three octets that make it.
func TestOfAnObjectWithTooManyPartsOnlyTheNameIsTakenIn(t *testing.T) {
	g, a := NewWithT(t), &API{}
	object := fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"},"spec":{"ports":[{}%s]}}`, strings.Repeat(",{}", MostParts))
	fewer := []byte(strings.Replace(string(object), ",{}", "", 10))
	g.Expect(a.bounded(fewer)).To(Equal(fewer))
	g.Expect(a.HasCut()).To(BeFalse())
	g.Expect(a.bounded(object)).To(MatchJSON(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"}}`))
	g.Expect(a.HasCut()).To(BeTrue())
}

func TestAListIsReadAsItComes(t *testing.T) {
	for text, want := range map[string]struct {
		items    int
		says     listMeta
		problem  error
		anyError bool
	}{
		`{"kind":"List","metadata":{"resourceVersion":"5","continue":"x"},"items":[{"a":1},{"b":[2]}]}`: {items: 2, says: listMeta{"5", "x"}},
		`{"items":[{}],"more":{"deep":[1,{}]},"metadata":{"resourceVersion":"5"}}`:                      {items: 1, says: listMeta{"5", ""}},
		`{"metadata":{},"items":null}`: {},
		`{}`:                           {},
		`[]`:                           {problem: ErrNoKubernetes},
		`7`:                            {problem: ErrNoKubernetes},
		`{"items":{}}`:                 {problem: ErrNoKubernetes},
		`no JSON`:                      {anyError: true},
		`{"items":[{}`:                 {items: 1, anyError: true},
		``:                             {anyError: true},
	} {
		for name, body := range map[string]io.Reader{"at once": strings.NewReader(text), "by octets": iotest.OneByteReader(strings.NewReader(text))} {
			t.Run(text+" "+name, func(t *testing.T) {
				g, items := NewWithT(t), 0
				says, err := eachOf(&meter{ctx: t.Context(), body: io.NopCloser(body), large: make(chan struct{}, 1), ofAll: make(chan struct{}, 1)}, func([]byte) error { items++; return nil })
				switch {
				case want.anyError:
					g.Expect(err).To(HaveOccurred())
				case want.problem != nil:
					g.Expect(err).To(MatchError(want.problem))
				default:
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(says).To(Equal(want.says))
				}
				g.Expect(items).To(Equal(want.items))
			})
		}
	}
}

// Pages may say for ever that there are more, with nothing in them, and with what was there before.
func TestAListThatDoesNotEndIsLeft(t *testing.T) {
	for name, page := range map[string]string{
		"empty pages":     `{"metadata":{"continue":"x"},"items":[]}`,
		"the same object": `{"metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			g, asked := NewWithT(t), 0
			a := hostedAPI(func(*http.Request) string { asked++; return page })
			defer a.Close()
			s := things.shelf(a)
			_, err := things.List(t.Context(), a, s.put)
			g.Expect(err).To(And(MatchError(ErrTooMuch), MatchError(errPages)))
			g.Expect(asked).To(Equal(mostPages))
		})
	}
}

func TestAListThatTakesItsTimeIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := NewWithT(t), time.Now()
		a := hostedAPI(func(*http.Request) string {
			time.Sleep(time.Second)
			return `{"metadata":{"continue":"x"},"items":[]}`
		})
		defer a.Close()
		_, err := things.List(t.Context(), a, things.shelf(a).put)
		g.Expect(err).To(MatchError(errEndless))
		g.Expect(time.Since(began)).To(BeNumerically("~", listedIn, time.Second))
	})
}

// rested waits until the share of all is whole again, for the tests that follow.
func rested() {
	time.Sleep(2 * time.Hour)
	objectsFromAll.Allow()
}

// Objects cost the processor more than they have bytes. Who sends many waits, and nobody else with him.
func TestObjectsAreTakenInAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		hostile, taken := newShare("hostile"), atomic.Int64{}
		flooding, stop := context.WithCancel(ctx)
		for range 3 {
			go func() {
				for hostile.paced(flooding) == nil {
					taken.Add(1)
				}
			}()
		}
		time.Sleep(10*time.Second - 1)
		synctest.Wait()
		g.Expect(taken.Load()).To(BeNumerically("~", objectsAtOnce+10*ObjectsOfOne, 3))
		g.Expect(hostile.isSlowed()).To(BeTrue())
		good := newShare("good")
		begun := time.Now()
		g.Expect(good.paced(ctx)).To(Succeed())
		g.Expect(time.Since(begun)).To(BeNumerically("<", 50*time.Millisecond))
		g.Expect(good.isSlowed()).To(BeFalse())
		stop()
		g.Expect(hostile.paced(flooding)).To(MatchError(context.Canceled))
		rested()
		g.Expect(hostile.isSlowed()).To(BeFalse(), "that is long ago")
	})
}

// Nor does who connects anew begin with a new share, and who has many connections has one place in the line.
func TestAShareOutlivesItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, all := NewWithT(t), &shares{of: map[string]*share{}}
		first := all.begin("hostile")
		for range objectsAtOnce {
			g.Expect(first.paced(t.Context())).To(Succeed())
		}
		all.end(first)
		g.Expect(all.begin("hostile")).To(BeIdenticalTo(first))
		all.end(first)
		time.Sleep(objectsAtOnce / ObjectsOfOne * time.Second)
		all.end(all.begin("another"))
		g.Expect(all.of).To(BeEmpty(), "it is whole again")
	})
}

func TestTheGoodStandsInNoLongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		flooding, stop := context.WithCancel(t.Context())
		var floods sync.WaitGroup
		for range 20 {
			hostile := newShare("hostile")
			for range 12 {
				floods.Go(func() {
					for hostile.paced(flooding) == nil {
					}
				})
			}
		}
		time.Sleep(5 * time.Minute) // all bursts are over
		good, begun := newShare("good"), time.Now()
		for range 100 {
			g.Expect(good.paced(t.Context())).To(Succeed())
		}
		g.Expect(time.Since(begun)).To(BeNumerically("<", time.Second))
		stop()
		floods.Wait()
		rested()
	})
}

// What all hosted clusters may have us keep is refused to those that have more than their share of it.
func TestWhatIsKeptOfAllIsShared(t *testing.T) {
	g, r := NewWithT(t), &room{of: map[*share]int{}}
	var all []*holding
	for i := range mostOfAll/MostBytes + 1 {
		all = append(all, &holding{to: newShare("hosted")})
		err := r.take(all[i], MostBytes)
		if i < mostOfAll/MostBytes {
			g.Expect(err).NotTo(HaveOccurred())
		} else {
			g.Expect(err).To(And(MatchError(ErrTooMuch), MatchError(errShare)), "all is taken, and this has as much as the others")
			r.leave(all[i])
		}
	}
	modest := &holding{to: newShare("hosted")}
	g.Expect(r.take(modest, mostOfAll/(len(all)+1))).To(Succeed(), "it has its share")
	g.Expect(r.take(all[0], 0)).To(Succeed(), "what only changes takes nothing")
	room, alone := &room{of: map[*share]int{}}, &holding{to: newShare("hosted")}
	g.Expect(room.take(alone, MostBytes)).To(Succeed())
	g.Expect(room.take(alone, 1)).To(MatchError(ErrTooMuch), "no hosted cluster has more than its own bound")
	for _, a := range append(all, modest) {
		r.leave(a)
	}
	g.Expect(r.all).To(BeZero())
	g.Expect(r.of).To(BeEmpty())
}

// 500 changes a second of 5,000 objects would have each of them sorted and compared 500 times.
func TestManyChangesAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told, last := NewWithT(t), 0, 0
		a := hostedAPI(func(r *http.Request) string {
			if !r.URL.Query().Has("watch") {
				return `{"metadata":{"resourceVersion":"1"},"items":[]}`
			}
			var events strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&events, `{"type":"ADDED","object":{"metadata":{"name":"n%d","resourceVersion":"1"}}}`, i)
			}
			return events.String()
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Follow(ctx, a, things, func(all []string) { told++; last = len(all) })
		}()
		time.Sleep(3 * pace.TellEvery)
		synctest.Wait()
		g.Expect(last).To(Equal(1000))
		g.Expect(told).To(BeNumerically("<=", 3))
		stop()
		g.Expect(<-ended).To(MatchError(context.Canceled))
		a.Close()
		g.Expect(kept.of).NotTo(HaveKey(a.to), "what was kept is given back")
	})
}

// Any user of a hosted cluster makes Services. More than are kept of such a collection end no visit: something stands for them until there are
// fewer.
func TestMoreThanIsKeptIsStoodFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		many := atomic.Bool{}
		many.Store(true)
		page := func(n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(`{"metadata":{"namespace":"a","name":"s%d","resourceVersion":"1"},"spec":{"type":"ClusterIP"}}`, i))
			}
			return `{"metadata":{"resourceVersion":"1"},"items":[` + strings.Join(all, ",") + `]}`
		}
		a := hostedAPI(func(r *http.Request) string {
			switch {
			case r.URL.Query().Has("watch"):
				return ""
			case many.Load():
				return page(MostObjects + 1)
			}
			return page(2)
		})
		const tooMany = "too many"
		guarded, kept := things, []string{}
		guarded.Over = ptr.To(tooMany)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Follow(ctx, a, guarded, func(all []string) { kept = all }) }()
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(kept).To(Equal([]string{tooMany}))
		many.Store(false)
		time.Sleep(CrowdedPause)
		synctest.Wait()
		g.Expect(kept).To(Equal([]string{"s0", "s1"}))
		stop()
		<-ended
		a.Close()
	})
}
