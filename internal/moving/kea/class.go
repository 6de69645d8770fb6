package kea

import "github.com/cldmnky/oooi/internal/moving/draft"

// limit says whom ranges serve, if their pool, subnet or shared network names classes: one in Kea up to 2.6, several after, of which a client has
// to be in one. Every client is in ALL, and in KNOWN or UNKNOWN (Kea Administrator Reference Manual, "Built-in Client Classes").
func (r *reader) limit(at draft.Line, ranges []draft.Range, n node) {
	classes := n.get("client-classes").items
	if one := n.get("client-class"); one.text != "" {
		classes = append(classes, one)
	}
	if len(classes) == 0 {
		return
	}
	known, unknown := false, false
	for _, c := range classes {
		known = known || c.text == "ALL" || c.text == "KNOWN"
		unknown = unknown || c.text == "ALL" || c.text == "UNKNOWN"
	}
	switch {
	case known && unknown:
		return
	case known:
		narrow(ranges, draft.Known)
	case unknown:
		r.Leave(at, "it is for clients without a reservation; those with one get its addresses, too")
	default:
		r.Leave(at, "%s; its addresses are left, too", ofSome)
		narrow(ranges, draft.Some)
	}
}

// narrow keeps what is for fewer.
func narrow(ranges []draft.Range, of draft.Clients) {
	for i := range ranges {
		ranges[i].Of = max(ranges[i].Of, of)
	}
}
