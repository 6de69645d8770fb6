package approve

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// servingAtOnce certificates a Node may have, and then one each servingEvery. A kubelet requests one when it starts, when its addresses
	// change, and before the last expires (kubelet pkg/kubelet/certificate); it may be restarted several times.
	servingAtOnce = 10
	servingEvery  = time.Minute
)

func newServingPace() *rate.Limiter { return rate.NewLimiter(rate.Every(servingEvery), servingAtOnce) }
