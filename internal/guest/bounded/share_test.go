package bounded

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

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

// Whatever some hosted clusters send, another is read at full speed, and all together no faster than their limit.
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
		time.Sleep(time.Second) // all connections are closed, and the limit of all is full again
	})
}

// bytesRead is the metric of a server; negative if it has none.
func bytesRead(t *testing.T, server string) float64 {
	t.Helper()
	return counted(t, "oooi_hosted_cluster_read_bytes_total", server)
}

func counted(t *testing.T, metric, server string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == metric && m.Label[0].GetValue() == server {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// This holds for all connections to its server together.
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

// rested waits until the limit of all is full again, for later tests.
func rested() {
	time.Sleep(2 * time.Hour)
	objectsFromAll.Allow()
}

// Small objects cost more processor time than their bytes suggest. A server that sends many of them waits, and no other does.
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
		g.Expect(counted(t, "oooi_hosted_cluster_late_objects_total", "hostile")).To(BeNumerically("~", 10*ObjectsOfOne, 3), "each object that had to wait is counted")
		good := newShare("good")
		begun := time.Now()
		g.Expect(good.paced(ctx)).To(Succeed())
		g.Expect(time.Since(begun)).To(BeNumerically("<", 50*time.Millisecond))
		g.Expect(good.isSlowed()).To(BeFalse())
		g.Expect(counted(t, "oooi_hosted_cluster_late_objects_total", "good")).To(BeZero())
		stop()
		g.Expect(hostile.paced(flooding)).To(MatchError(context.Canceled))
		rested()
		g.Expect(hostile.isSlowed()).To(BeFalse(), "that is long ago")
	})
}

// A bookmark costs as much as another event, and the answer to an HTTP/2 frame as much as a read: both are limited, and slowing is reported.
func TestWhoIsNoObjectIsPacedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		bookmark := `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}`
		a := hostedAPI(func(*http.Request) string { return strings.Repeat(bookmark, objectsAtOnce+2*ObjectsOfOne) })
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := things.watch(soon, a, "1", func(watch.EventType, []byte) error { return nil }, func() {})
		g.Expect(err).To(MatchError(context.DeadlineExceeded), "the last come two seconds later")
		g.Expect(a.IsSlowed()).To(BeTrue())
	})
	synctest.Test(t, func(t *testing.T) {
		g, one := NewWithT(t), newShare("hosted")
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		c, begun := rationed{here, one}, time.Now()
		for range answersAtOnce {
			_, err := c.Write([]byte("a"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(time.Since(begun)).To(BeZero())
		g.Expect(one.isSlowed()).To(BeFalse())
		for range AnswersOfOne {
			_, err := c.Write([]byte("a"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(time.Since(begun)).To(BeNumerically("~", time.Second, 10*time.Millisecond))
		g.Expect(one.isSlowed()).To(BeTrue())
		here.Close()
		there.Close()
	})
}

// A server that reconnects does not get a new share, and one with many connections has one place in the queue.
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
		time.Sleep(5 * time.Minute) // all bursts are used up
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

// Beside a server that never has to wait, everything else that runs gets its turn after each object, also with one processor.
func TestAfterEachObjectOthersGoOn(t *testing.T) {
	g, of := NewWithT(t), newShare("greedy")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var done atomic.Bool
	defer done.Store(true)
	go func() {
		for ; !done.Load(); turns.Add(1) {
			runtime.Gosched()
		}
	}()
	const objects = 100
	for range objects {
		g.Expect(of.paced(t.Context())).To(Succeed())
	}
	g.Expect(turns.Load()).To(BeNumerically(">", objects/2))
}
