package clock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// node is a machine whose time since boot the test sets.
type node struct {
	boot time.Duration
	*Clock
}

func newNode(bootID string) *node {
	n := &node{boot: time.Hour}
	n.Clock = From(func() time.Duration { return n.boot }, bootID)
	n.Tolerate(time.Minute, 24*time.Hour)
	return n
}

func (n *node) told(date time.Time) { n.Observe(date, n.boot, n.boot) }

func (n *node) time() time.Time { now, _ := n.Now(); return now }

func (n *node) steady() bool { _, steady := n.Now(); return steady }

func TestTheTimeIsTheServersAndMovesWithTheBootClock(t *testing.T) {
	n, g := newNode("a"), NewWithT(t)
	g.Expect(n.time()).To(BeZero(), "nobody has told it")
	n.told(noon)
	n.boot += time.Hour
	g.Expect(n.time()).To(Equal(noon.Add(time.Hour)))
	g.Expect(n.steady()).To(BeTrue())
}

func TestADateTellsWholeSecondsOnly(t *testing.T) {
	n, g := newNode("a"), NewWithT(t)
	n.told(noon)
	n.boot += 900 * time.Millisecond
	n.told(noon) // still the same second
	g.Expect(n.time()).To(Equal(noon.Add(900 * time.Millisecond)))
	n.boot += 200 * time.Millisecond
	n.told(noon.Add(2 * time.Second)) // at least .9 s later than we thought
	g.Expect(n.time()).To(Equal(noon.Add(2 * time.Second)))
}

func TestAJumpIsUnsteadyUntilItHasBeenCalm(t *testing.T) {
	for name, jump := range map[string]time.Duration{"a year ahead": 365 * 24 * time.Hour, "a year back": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			n, g := newNode("a"), NewWithT(t)
			n.told(noon)
			n.told(noon.Add(time.Minute))
			g.Expect(n.steady()).To(BeTrue(), "within the tolerance")
			n.told(noon.Add(jump))
			g.Expect(n.steady()).To(BeFalse())
			n.boot += 24*time.Hour - time.Second
			g.Expect(n.steady()).To(BeFalse())
			n.boot += time.Second
			g.Expect(n.steady()).To(BeTrue())
		})
	}
}

func TestADriftIsNoJump(t *testing.T) {
	n, g := newNode("a"), NewWithT(t)
	server := noon
	n.told(server)
	for range 60 {
		n.boot += 24 * time.Hour
		server = server.Add(24*time.Hour + 4*time.Second) // 50 ppm
		n.told(server)
		g.Expect(n.steady()).To(BeTrue())
	}
}

func TestSmallMovesWithinALeaseTimeAddUp(t *testing.T) {
	n, g := newNode("a"), NewWithT(t)
	server := noon
	n.told(server)
	for _, steady := range []bool{true, true, false} {
		n.boot += time.Hour
		server = server.Add(time.Hour + 25*time.Second)
		n.told(server)
		g.Expect(n.steady()).To(Equal(steady))
	}
}

func TestASecondThatPassesBeforeTheConfigurationIsNoJump(t *testing.T) {
	n, g := &node{boot: time.Hour}, NewWithT(t)
	n.Clock = From(func() time.Duration { return n.boot }, "a")
	n.told(noon)
	n.told(noon.Add(2 * time.Second))
	n.Tolerate(time.Minute, 24*time.Hour)
	g.Expect(n.steady()).To(BeTrue())
}

func TestASavedOffsetCountsOnTheSameBootOnly(t *testing.T) {
	n, g := newNode("a"), NewWithT(t)
	n.told(noon)
	saved, ok := n.Save()
	g.Expect(ok).To(BeTrue())

	same := newNode("a")
	same.boot += time.Minute
	same.Restore(saved)
	g.Expect(same.time()).To(Equal(noon.Add(time.Minute)))

	rebooted := newNode("b")
	rebooted.Restore(saved)
	g.Expect(rebooted.time()).To(BeZero())
	nameless := newNode("")
	nameless.Restore(Saved{Offset: time.Hour})
	g.Expect(nameless.time()).To(BeZero())
}

func TestAloneTheTimeNeverGoesBack(t *testing.T) {
	saved := Saved{BootID: "a", Latest: noon}
	for name, c := range map[string]struct{ wall, now time.Time }{
		"a wall clock that lost its battery": {time.Unix(0, 0), noon},
		"one that went on":                   {noon.Add(time.Hour), noon.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode("b")
			n.Alone(saved, c.wall)
			NewWithT(t).Expect(n.time()).To(Equal(c.now))
		})
	}
	t.Run("and on the same boot the wall clock is not asked", func(t *testing.T) {
		n := newNode("a")
		n.Alone(Saved{BootID: "a", Offset: time.Duration(noon.UnixNano()) - time.Hour}, noon.Add(365*24*time.Hour))
		NewWithT(t).Expect(n.time()).To(Equal(noon))
	})
}

func TestAloneAWallClockThatWasSetIsAJump(t *testing.T) {
	saved := Saved{BootID: "a", Latest: noon}
	for name, c := range map[string]struct{ wall, jump time.Duration }{
		"a year ahead":                {365 * 24 * time.Hour, 365 * 24 * time.Hour},
		"a year back":                 {-365 * 24 * time.Hour, -365 * 24 * time.Hour},
		"as long as a restart, ahead": {time.Minute, 0},
		"a little back":               {-time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode("b")
			g.Expect(n.Alone(saved, noon.Add(c.wall))).To(Equal(c.jump))
			g.Expect(n.steady()).To(Equal(c.jump == 0))
			now, _ := n.Save()
			again := newNode("b")
			again.Alone(now, noon)
			g.Expect(again.steady()).To(Equal(c.jump == 0), "another process of the same boot")
			again.boot += 24 * time.Hour
			g.Expect(again.steady()).To(BeTrue())
		})
	}
	n := newNode("b")
	NewWithT(t).Expect(n.Alone(Saved{}, noon)).To(BeZero(), "no time was seen before")
	NewWithT(t).Expect(n.steady()).To(BeTrue())
}

func TestEveryAnswerTellsTheTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", noon.Format(http.TimeFormat)) }))
	defer server.Close()
	n := newNode("a")
	answer, err := (&http.Client{Transport: n.Listen(http.DefaultTransport)}).Get(server.URL)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(answer.Body.Close()).To(Succeed())
	NewWithT(t).Expect(n.time()).To(Equal(noon))
}
