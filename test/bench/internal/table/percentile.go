package table

import (
	"slices"
	"time"
)

// Percentile is the least that so many in a hundred do not exceed; 0 if there are none.
func Percentile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}
