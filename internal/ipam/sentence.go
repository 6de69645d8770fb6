package ipam

import (
	"fmt"

	"github.com/cldmnky/oooi/internal/component"
)

// serverIP is the field of an Infra with an address, below spec.infraComponents, and what it has.
func serverIP(c component.Name, at any) (field string, value any) {
	if first, second := firstOf(c); second {
		return string(first) + ".additionalServerIPs", []any{at}
	}
	return string(c) + ".serverIP", at
}

// titled is a component, or its second instance, in a sentence.
func titled(c component.Name) string {
	if first, second := firstOf(c); second {
		return "the second " + string(first) + " instance"
	}
	return string(c)
}

// firstOf is the component of which this is the second instance, if it is one.
func firstOf(c component.Name) (component.Name, bool) {
	for _, first := range component.Names() {
		if first.Second() == c {
			return first, true
		}
	}
	return "", false
}

// remedy is what to do about an address that a component cannot have.
func (a *assigner) remedy(field string, written bool) string {
	free, ok := a.free()
	switch {
	case ok && written:
		return fmt.Sprintf("%s is free, or omit the field", free)
	case ok:
		return fmt.Sprintf("set %s to a free address, e.g. %s, or move what uses it", field, free)
	}
	return fmt.Sprintf("set %s to a free address, or move what uses it", field)
}
