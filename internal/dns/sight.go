package dns

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

const (
	// silentAfter is how long nothing comes from an address that is said to be silent: neither a flood, which fills a port's queue, nor a
	// pod that is made anew on its node takes as long.
	silentAfter = 2 * time.Second
	// disputeTime is how long the other instance has to say that it hears the address.
	disputeTime = 2 * time.Second
)

// sight is what is known of one address.
type sight struct {
	at    netip.AddrPort // what is checked; port 0: whether a host is there
	stop  context.CancelFunc
	down  bool      // it accepts nothing
	heard time.Time // when something came from it last, or when the checks began
	met   bool      // something has come from it
	state v1alpha1.HealthState
	// own and others are the states that the API server has of this instance and of the others.
	own    v1alpha1.HealthState
	others []v1alpha1.HealthState
	// told is since when the API server has our word that it is silent, undisputed.
	told time.Time
}

func (s *sight) hears() { s.heard, s.met = time.Now(), true }

// next is the state now. One instance alone cannot tell an address that is lost from a VLAN that it is cut off from: so it first says that
// it hears nothing, where the other can read it. Time counts from when the API server has that, for it may be slow.
func (s *sight) next(now time.Time) v1alpha1.HealthState {
	says := func(states ...v1alpha1.HealthState) bool {
		return slices.ContainsFunc(s.others, func(other v1alpha1.HealthState) bool { return slices.Contains(states, other) })
	}
	if now.Sub(s.heard) < silentAfter {
		s.told = time.Time{}
		if s.met && says(v1alpha1.HealthSilent, v1alpha1.HealthLost) {
			return v1alpha1.HealthConfirmed
		}
		return v1alpha1.HealthAnswers
	}
	if says(v1alpha1.HealthConfirmed) || s.own != v1alpha1.HealthSilent && s.own != v1alpha1.HealthLost {
		s.told = time.Time{}
		return v1alpha1.HealthSilent
	}
	if s.told.IsZero() {
		s.told = now
	}
	if now.Sub(s.told) < disputeTime {
		return v1alpha1.HealthSilent
	}
	return v1alpha1.HealthLost
}
