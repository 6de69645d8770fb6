package pool

import (
	"iter"
	"math/bits"
	"net/netip"
)

// untaken are the addresses of a range that a new client may get and that have no record: a bit each, since a pool may hold millions.
type untaken struct {
	first, size uint64
	words       []uint64 // a bit is set where the address is taken
}

func newUntaken(r Range) *untaken {
	first, last := number(r.First), number(r.Last)
	u := &untaken{first: first, size: last - first + 1}
	u.words = make([]uint64, (u.size+63)/64)
	if rest := u.size % 64; rest != 0 {
		u.words[len(u.words)-1] = ^uint64(0) << rest // bits beyond the range are taken
	}
	return u
}

// place is the index of an address in the range; at least size for an address outside it.
func (u *untaken) place(ip netip.Addr) uint64 { return number(ip) - u.first }

func (u *untaken) put(ip netip.Addr, taken bool) {
	n := u.place(ip)
	switch bit := uint64(1) << (n % 64); {
	case n >= u.size: // outside the range; below it, n wraps around
	case taken:
		u.words[n/64] |= bit
	default:
		u.words[n/64] &^= bit
	}
}

func (u *untaken) take(r Range) {
	from, to := max(number(r.First), u.first), min(number(r.Last), u.first+u.size-1)
	for n := from; n <= to; n++ {
		if at := n - u.first; at%64 == 0 && to-n >= 63 {
			u.words[at/64] = ^uint64(0)
			n += 63
		} else {
			u.words[at/64] |= 1 << (at % 64)
		}
	}
}

// from yields the untaken addresses in order, from index start on and then from the first.
func (u *untaken) from(start uint64) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		words := uint64(len(u.words))
		for i := range words + 1 { // the word of start comes twice: first its bits from start on, last those before it
			w := (start/64 + i) % words
			free := ^u.words[w]
			switch below := uint64(1)<<(start%64) - 1; i {
			case 0:
				free &^= below
			case words:
				free &= below
			}
			for ; free != 0; free &= free - 1 {
				if !yield(addrOf(u.first + w*64 + uint64(bits.TrailingZeros64(free)))) {
					return
				}
			}
		}
	}
}
