package vm

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// index answers lookups. The new statement of an object replaces its last one, so that an event costs the same however many machines there are.
type index struct {
	said map[string]statement // by the UID of a machine or an instance
	pods map[string]pod       // by UID
	// launched are the pods of an instance, by its UID.
	launched map[string]map[string]bool
	// running and defined are the machines by hardware address: those that run with it, and those whose definition names it.
	running, defined machines
	byUID, byName    machines
	unresolved       int // instances with a hardware address that is not known yet
}

// statement is what a machine, or an instance of one, says.
type statement struct {
	vm   lease.VM
	macs []string
	runs bool
	nics int
	// started is when an instance was switched on.
	started time.Time
}

// machines are found by a key, each with the number of statements that name it.
type machines map[string]map[lease.VM]int

func newIndex() *index {
	return &index{
		said: map[string]statement{}, pods: map[string]pod{}, launched: map[string]map[string]bool{},
		running: machines{}, defined: machines{}, byUID: machines{}, byName: machines{},
	}
}

func (x *index) setMachine(m Machine) {
	x.change(string(m.UID), func(uid string) { x.said[uid] = statement{vm: m.self(), macs: m.macs()} })
}

func (x *index) setInstance(i Machine) {
	x.change(string(i.UID), func(uid string) {
		delete(x.said, uid)
		if !i.over() {
			x.said[uid] = statement{vm: i.owner(), macs: i.macs(), runs: true, nics: len(i.nics()), started: i.started()}
		}
	})
}

func (x *index) remove(uid string) {
	x.change(uid, func(uid string) { delete(x.said, uid) })
}

func (x *index) setPod(uid string, p pod) {
	x.removePod(uid)
	x.change(p.instance, func(instance string) {
		x.pods[uid] = p
		if x.launched[instance] == nil {
			x.launched[instance] = map[string]bool{}
		}
		x.launched[instance][uid] = true
	})
}

func (x *index) removePod(uid string) {
	x.change(x.pods[uid].instance, func(instance string) {
		delete(x.pods, uid)
		if delete(x.launched[instance], uid); len(x.launched[instance]) == 0 {
			delete(x.launched, instance)
		}
	})
}

func (x *index) change(uid string, change func(uid string)) {
	x.count(uid, -1)
	change(uid)
	x.count(uid, 1)
}

// count adds what an object says, or removes it. The hardware addresses of an instance's pods count as its own.
func (x *index) count(uid string, by int) {
	s, says := x.said[uid]
	if !says {
		return
	}
	x.byUID.count(s.vm.UID, s.vm, by)
	x.byName.count(s.vm.Name, s.vm, by)
	has, macs := x.defined, slices.Clone(s.macs)
	if s.runs {
		has = x.running
		for pod := range x.launched[uid] {
			macs = append(macs, x.pods[pod].macs...)
		}
		if distinct(macs) < s.nics {
			x.unresolved += by
		}
	}
	for _, mac := range macs {
		has.count(mac, s.vm, by)
	}
}

func (m machines) count(key string, vm lease.VM, by int) {
	if m[key] == nil {
		m[key] = map[lease.VM]int{}
	}
	if m[key][vm] += by; m[key][vm] == 0 {
		delete(m[key], vm)
	}
	if len(m[key]) == 0 {
		delete(m, key)
	}
}

// first is a machine of a key; of several, the one with the lowest UID.
func (m machines) first(key string) lease.VM {
	if len(m[key]) == 0 {
		return lease.VM{}
	}
	return slices.MinFunc(slices.Collect(maps.Keys(m[key])), func(a, b lease.VM) int { return cmp.Compare(a.UID, b.UID) })
}

func (x *index) owner(mac string) pool.Owner {
	switch {
	case len(x.running[mac]) > 0:
		return pool.Owner{VM: x.running.first(mac), Duplicate: len(x.running[mac]) > 1}
	case len(x.defined[mac]) > 0:
		return pool.Owner{VM: x.defined.first(mac)}
	}
	return pool.Owner{Unresolved: x.unresolved > 0}
}

// started is when a machine was switched on last; zero if it does not run.
func (x *index) started(vm lease.VM) (at time.Time) {
	for _, s := range x.said {
		if s.vm == vm && s.started.After(at) {
			at = s.started
		}
	}
	return at
}

func distinct(macs []string) int {
	seen := map[string]bool{}
	for _, mac := range macs {
		seen[mac] = true
	}
	return len(seen)
}
