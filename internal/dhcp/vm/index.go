package vm

import (
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// index answers lookups. It is made whole from what was watched, and then only read.
type index struct {
	byMAC      map[string]owners
	uids       map[string]bool
	byName     map[string]lease.VM
	unresolved bool
	certain    bool // KubeVirt is installed: what is not here is gone
}

// owners of one hardware address: machines that run with it, and machines that are only said to have it.
type owners struct{ running, defined []lease.VM }

// newIndex joins machines, instances and launcher pods (by the instance's UID).
func newIndex(machines, instances []Machine, launched map[string][]string) *index {
	x := &index{byMAC: map[string]owners{}, uids: map[string]bool{}, byName: map[string]lease.VM{}}
	for _, m := range machines {
		x.exists(m.self())
		for _, mac := range m.macs() {
			x.define(mac, m.self())
		}
	}
	for _, i := range instances {
		if i.over() {
			continue
		}
		x.exists(i.owner())
		macs := append(i.macs(), launched[string(i.UID)]...)
		for _, mac := range macs {
			x.run(mac, i.owner())
		}
		if distinct(macs) < len(i.nics()) {
			x.unresolved = true
		}
	}
	return x
}

func (x *index) exists(vm lease.VM) {
	x.uids[vm.UID], x.byName[vm.Name] = true, vm
}

func (x *index) define(mac string, vm lease.VM) {
	o := x.byMAC[mac]
	o.defined = append(o.defined, vm)
	x.byMAC[mac] = o
}

// run notes a machine once, although spec, status and pod all tell the same address.
func (x *index) run(mac string, vm lease.VM) {
	o := x.byMAC[mac]
	for _, other := range o.running {
		if other.UID == vm.UID {
			return
		}
	}
	o.running = append(o.running, vm)
	x.byMAC[mac] = o
}

func (x *index) owner(mac string) pool.Owner {
	o := x.byMAC[mac]
	switch {
	case len(o.running) > 0:
		return pool.Owner{VM: o.running[0], Duplicate: len(o.running) > 1}
	case len(o.defined) > 0:
		return pool.Owner{VM: o.defined[0]}
	}
	return pool.Owner{Unresolved: x.unresolved}
}

func distinct(macs []string) int {
	seen := map[string]bool{}
	for _, mac := range macs {
		seen[mac] = true
	}
	return len(seen)
}
