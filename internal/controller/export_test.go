package controller

import "time"

// SetGuestPatience is for tests, which have no ten minutes.
func SetGuestPatience(d time.Duration) (back func()) {
	before := guestPatience
	guestPatience = d
	return func() { guestPatience = before }
}
