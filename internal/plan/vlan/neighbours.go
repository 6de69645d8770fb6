package vlan

import (
	"cmp"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// Neighbour is another Infra on our layer 2. Findings name it to its own namespace only: it may be another tenant's.
type Neighbour struct {
	input.Neighbour
	VLAN  *Network
	Older bool
}

// onSameLayer2 are the other Infras on our layer 2, the oldest first.
func onSameLayer2(in input.Input, ours nad.Config) []Neighbour {
	if ours.Layer2() == "" {
		return nil
	}
	var all []Neighbour
	here := map[*nad.NetworkAttachmentDefinition]*Network{} // each is read once, though many Infras may join it; nil: another layer 2
	for _, n := range in.Neighbours {
		if _, read := here[n.NAD]; !read {
			here[n.NAD] = nil
			if v := networkAt(n.NAD); v.Config.Layer2() == ours.Layer2() {
				here[n.NAD] = &v
			}
		}
		if vlan := here[n.NAD]; vlan != nil && joined(in, n) && !refused(n) {
			all = append(all, Neighbour{Neighbour: n, VLAN: vlan, Older: byAge(n.Infra, in.Infra) < 0})
		}
	}
	slices.SortFunc(all, func(a, b Neighbour) int { return byAge(a.Infra, b.Infra) })
	return all
}

// refused says whether a neighbour has nothing on the VLAN and, with its current spec, will get nothing.
func refused(n input.Neighbour) bool {
	return len(n.Children) == 0 && input.Refused(n.Infra)
}

// joined says whether a neighbour may be on the network that it names. Children with its name prove nothing, because whoever may write an
// Infra may also write those. So an Infra whose reference grant was withdrawn blocks nobody either; what it still serves is for the
// network's owner to deal with.
func joined(in input.Input, n input.Neighbour) bool {
	return n.OnOwnNetwork || refgrant.Reference{
		From: n.Infra.Namespace, Namespace: n.NAD.Namespace, Annotations: n.NAD.Annotations, AllowedNamespaces: in.Settings.NADSourceNamespaces,
	}.Allowed()
}

func byAge(a, b *v1alpha1.Infra) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Precedes says whether the neighbour, and not we, gets what both want: the one that alone has it now, or else the older. So an edit takes
// nothing from an Infra that serves.
func (n Neighbour) Precedes(theirs, ours bool) bool {
	if theirs != ours {
		return theirs
	}
	return n.Older
}
