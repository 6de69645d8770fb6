package approve

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// servingAtOnce certificates a Node may have, and then one in servingEvery. A kubelet asks when it starts, when its addresses change,
	// and months later (kubelet pkg/kubelet/certificate); it may be restarted some times.
	servingAtOnce = 10
	servingEvery  = time.Minute
)

// newServingPace of one host.
func newServingPace() *rate.Limiter { return rate.NewLimiter(rate.Every(servingEvery), servingAtOnce) }
