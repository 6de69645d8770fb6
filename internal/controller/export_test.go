package controller

import "time"

// LookEvery is how often kinds are looked for.
const LookEvery = lookEvery

// SetGuestPatience is for tests, which have no ten minutes.
func SetGuestPatience(d time.Duration) (back func()) {
	before := guestPatience
	guestPatience = d
	return func() { guestPatience = before }
}
