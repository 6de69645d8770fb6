package dhcp

import (
	"hash/maphash"
	"sync"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/share"
)

// lanes limit, for each rank, how many messages are answered at a time and how many more wait: a flood of strangers, or of guests with a lease,
// fills its own lane only. A message that waited too long is not answered (dhcp-rules.md#lease-10).
var lanes = map[pool.Rank]struct{ answered, waiting int }{
	pool.Known: {1024, 1024}, pool.Holder: {256, 1024}, pool.Offered: {64, 1024}, pool.Stranger: {64, 1024},
}

// ofOneClient bounds the messages of one client under way: the one being answered and the next, such as a REQUEST behind a repeated DISCOVER.
const ofOneClient = 2

// lane bounds the messages under way, and answers those of one client one after the other.
type lane struct {
	*share.Places[lease.Client]
	answered chan struct{}   // one for each message being answered
	turns    [256]sync.Mutex // by a hash of the client; a collision costs a short wait
}

func newLanes() map[pool.Rank]*lane {
	all := map[pool.Rank]*lane{}
	for rank, n := range lanes {
		all[rank] = &lane{Places: share.New[lease.Client](n.answered+n.waiting, ofOneClient), answered: make(chan struct{}, n.answered)}
	}
	return all
}

// take answers a message that has entered, when its turn comes.
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
