package pool

import (
	"cmp"
	"container/heap"
	"net/netip"
	"time"
)

// byTime is a heap of addresses by time: the earliest first, or the latest.
type byTime struct {
	latest bool
	all    []timed
	at     map[uint32]int // index in all
}

type timed struct {
	time int64 // Unix time in microseconds, the precision of a lease
	ip   uint32
}

func newByTime(latest bool) *byTime { return &byTime{latest: latest, at: map[uint32]int{}} }

// put adds an address or changes its time; if in is false, it removes the address.
func (b *byTime) put(ip netip.Addr, when time.Time, in bool) {
	n := uint32(number(ip))
	i, is := b.at[n]
	switch {
	case is && in:
		b.all[i].time = when.UnixMicro()
		heap.Fix(b, i)
	case is:
		heap.Remove(b, i)
	case in:
		heap.Push(b, timed{when.UnixMicro(), n})
	}
}

// find returns the first address that suits; those before it are looked at one by one.
func (b *byTime) find(suits func(netip.Addr) bool) (netip.Addr, bool) {
	var passed []timed
	defer func() {
		for _, p := range passed {
			heap.Push(b, p)
		}
	}()
	for len(b.all) > 0 {
		if ip := addrOf(uint64(b.all[0].ip)); suits(ip) {
			return ip, true
		}
		passed = append(passed, heap.Pop(b).(timed))
	}
	return netip.Addr{}, false
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (b *byTime) Len() int { return len(b.all) }

func (b *byTime) Less(i, j int) bool {
	x, y := b.all[i], b.all[j]
	if b.latest {
		x, y = y, x
	}
	return cmp.Or(cmp.Compare(x.time, y.time), cmp.Compare(x.ip, y.ip)) < 0
}

func (b *byTime) Swap(i, j int) {
	b.all[i], b.all[j] = b.all[j], b.all[i]
	b.at[b.all[i].ip], b.at[b.all[j].ip] = i, j
}

// Push adds at the end.
func (b *byTime) Push(x any) {
	b.at[x.(timed).ip] = len(b.all)
	b.all = append(b.all, x.(timed))
}

// Pop takes from the end.
func (b *byTime) Pop() any {
	last := b.all[len(b.all)-1]
	b.all = b.all[:len(b.all)-1]
	delete(b.at, last.ip)
	return last
}

// standing counts the leases whose promise stands, without a walk: count moves only those whose horizon has passed since the last count.
type standing struct{ now, past *byTime }

func newStanding() standing { return standing{newByTime(false), newByTime(true)} }

func (s standing) put(ip netip.Addr, horizon time.Time, in bool) {
	s.past.put(ip, horizon, false)
	s.now.put(ip, horizon, in)
}

func (s standing) count(now time.Time) int {
	at := now.UnixMicro()
	for len(s.now.all) > 0 && s.now.all[0].time < at {
		heap.Push(s.past, heap.Pop(s.now))
	}
	for len(s.past.all) > 0 && s.past.all[0].time >= at { // the clock went back
		heap.Push(s.now, heap.Pop(s.past))
	}
	return len(s.now.all)
}
