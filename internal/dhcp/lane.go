package dhcp

import (
	"hash/maphash"
	"sync"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// lanes are how many messages of each rank may be under way: a flood of strangers, or of guests who have a lease, fills its own lane only.
var lanes = map[pool.Rank]int{pool.Known: 1024, pool.Holder: 256, pool.Stranger: 64}

// ofOneClient are under way at most: one that is answered, and the one after it, as the REQUEST behind a DISCOVER that is asked twice.
const ofOneClient = 2

// lane is a bounded number of messages under way, those of one client one after the other.
type lane struct {
	slots chan struct{}
	turns [256]sync.Mutex // by client; two that share one only wait a little

	mu  sync.Mutex
	has map[lease.Client]int
}

func newLanes() map[pool.Rank]*lane {
	all := map[pool.Rank]*lane{}
	for rank, slots := range lanes {
		all[rank] = &lane{slots: make(chan struct{}, slots), has: map[lease.Client]int{}}
	}
	return all
}

// enter takes a slot, if there is one, for a client that has not its share.
func (l *lane) enter(c lease.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has[c] >= ofOneClient {
		return false
	}
	select {
	case l.slots <- struct{}{}:
		l.has[c]++
		return true
	default:
		return false
	}
}

func (l *lane) leave(c lease.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	<-l.slots
	if l.has[c]--; l.has[c] == 0 {
		delete(l.has, c)
	}
}

func (l *lane) turn(c lease.Client) *sync.Mutex {
	return &l.turns[maphash.Comparable(laneSeed, c)%uint64(len(l.turns))]
}

var laneSeed = maphash.MakeSeed()
