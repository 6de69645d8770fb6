package dhcp

import (
	"hash/maphash"
	"sync"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/share"
)

// lanes are how many messages of each rank may be under way: a flood of strangers, or of guests who have a lease, fills its own lane only.
var lanes = map[pool.Rank]int{pool.Known: 1024, pool.Holder: 256, pool.Stranger: 64}

// ofOneClient are under way at most: one that is answered, and the one after it, as the REQUEST behind a DISCOVER that is asked twice.
const ofOneClient = 2

// lane is a bounded number of messages under way, those of one client one after the other.
type lane struct {
	*share.Places[lease.Client]
	turns [256]sync.Mutex // by client; two that share one only wait a little
}

func newLanes() map[pool.Rank]*lane {
	all := map[pool.Rank]*lane{}
	for rank, slots := range lanes {
		all[rank] = &lane{Places: share.New[lease.Client](slots, ofOneClient)}
	}
	return all
}

func (l *lane) turn(c lease.Client) *sync.Mutex {
	return &l.turns[maphash.Comparable(laneSeed, c)%uint64(len(l.turns))]
}

var laneSeed = maphash.MakeSeed()
