package dhcp

import (
	"hash/maphash"
	"sync"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/share"
)

// lanes are how many messages of each rank may be answered at a time, and how many more wait for that: a flood of strangers, or of guests
// who have a lease, fills its own lane only. What waited for too long is not answered (dhcp-rules.md#lease-10).
var lanes = map[pool.Rank]struct{ answered, waiting int }{
	pool.Known: {1024, 1024}, pool.Holder: {256, 1024}, pool.Offered: {64, 1024}, pool.Stranger: {64, 1024},
}

// ofOneClient are under way at most: one that is answered, and the one after it, as the REQUEST behind a DISCOVER that is asked twice.
const ofOneClient = 2

// lane is a bounded number of messages under way, those of one client one after the other.
type lane struct {
	*share.Places[lease.Client]
	answered chan struct{}   // full while no other may be
	turns    [256]sync.Mutex // by client; two that share one only wait a little
}

func newLanes() map[pool.Rank]*lane {
	all := map[pool.Rank]*lane{}
	for rank, n := range lanes {
		all[rank] = &lane{Places: share.New[lease.Client](n.answered+n.waiting, ofOneClient), answered: make(chan struct{}, n.answered)}
	}
	return all
}

// take answers a message that has entered, in its turn.
func (l *lane) take(c lease.Client, answer func()) {
	defer l.Leave(c)
	turn := l.turn(c)
	turn.Lock() // first: who waits for its turn holds nobody else up
	defer turn.Unlock()
	l.answered <- struct{}{}
	defer func() { <-l.answered }()
	answer()
}

func (l *lane) turn(c lease.Client) *sync.Mutex {
	return &l.turns[maphash.Comparable(laneSeed, c)%uint64(len(l.turns))]
}

var laneSeed = maphash.MakeSeed()
