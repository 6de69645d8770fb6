package check

import (
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

func wrongAt(reason, field string) finding.Builder {
	return finding.Refuse(v1alpha1.ConditionAccepted, reason).At(field)
}

// but is a list without one element, for a change; an empty one removes the field.
func but[T comparable](list []T, one T) any {
	left := slices.DeleteFunc(slices.Clone(list), func(e T) bool { return e == one })
	if len(left) == 0 {
		return nil
	}
	return left
}
