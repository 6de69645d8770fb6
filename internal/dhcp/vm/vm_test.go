package vm

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

func machine(t *testing.T, object string) Machine {
	t.Helper()
	var m Machine
	NewWithT(t).Expect(json.Unmarshal([]byte(object), &m)).To(Succeed())
	return m
}

const (
	vmWithMAC = `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vm-1"},"spec":{"template":{"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan","macAddress":"52:54:00:AA:00:01"}]}}}}}}`
	vmWithout = `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vm-1"},"spec":{"template":{"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan"}]}}}}}}`
	owned     = `"ownerReferences":[{"kind":"VirtualMachine","name":"worker-1","uid":"vm-1"}]`
	starting  = `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vmi-1",` + owned + `},"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan"}]}}},"status":{"phase":"Scheduling"}}`
	running   = `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vmi-1",` + owned + `},"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan"}]}}},"status":{"phase":"Running","interfaces":[{"name":"vlan","mac":"52:54:00:aa:00:01"}]}}`
	stopped   = `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vmi-1",` + owned + `},"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan"}]}}},"status":{"phase":"Succeeded","interfaces":[{"name":"vlan","mac":"52:54:00:aa:00:01"}]}}`
	twin      = `{"metadata":{"name":"worker-2","namespace":"clusters-c1","uid":"vmi-2","ownerReferences":[{"kind":"VirtualMachine","name":"worker-2","uid":"vm-2"}]},"spec":{"domain":{"devices":{"interfaces":[{"name":"vlan","macAddress":"52:54:00:aa:00:01"}]}}},"status":{"phase":"Running"}}`
)

var worker1 = lease.VM{Namespace: "clusters-c1", Name: "worker-1", UID: "vm-1"}

func indexOf(machines, instances []Machine, launched map[string][]string) *index {
	x := newIndex()
	for instance, macs := range launched {
		x.setPod("pod-of-"+instance, pod{instance, macs})
	}
	for _, m := range machines {
		x.setMachine(m)
	}
	for _, i := range instances {
		x.setInstance(i)
	}
	return x
}

func TestWhoseHardwareAddress(t *testing.T) {
	const mac = "52:54:00:aa:00:01"
	for name, c := range map[string]struct {
		machines, instances []string
		launched            map[string][]string
		owner               pool.Owner
		inUse               bool
	}{
		"nobody's":                            {},
		"in the machine's spec":               {machines: []string{vmWithMAC}, owner: pool.Owner{VM: worker1}},
		"in the instance's status":            {machines: []string{vmWithout}, instances: []string{running}, owner: pool.Owner{VM: worker1}, inUse: true},
		"in the launcher pod only, so far":    {machines: []string{vmWithout}, instances: []string{starting}, launched: map[string][]string{"vmi-1": {mac}}, owner: pool.Owner{VM: worker1}, inUse: true},
		"an instance whose address is open":   {machines: []string{vmWithout}, instances: []string{starting}, owner: pool.Owner{Unresolved: true}},
		"an instance that has stopped":        {machines: []string{vmWithout}, instances: []string{stopped}},
		"two running machines'":               {machines: []string{vmWithMAC}, instances: []string{running, twin}, owner: pool.Owner{VM: worker1, Duplicate: true}, inUse: true},
		"of one that runs, said of a stopped": {machines: []string{vmWithMAC}, instances: []string{twin}, owner: pool.Owner{VM: lease.VM{Namespace: "clusters-c1", Name: "worker-2", UID: "vm-2"}}, inUse: true},
	} {
		t.Run(name, func(t *testing.T) {
			var machines, instances []Machine
			for _, o := range c.machines {
				machines = append(machines, machine(t, o))
			}
			for _, o := range c.instances {
				instances = append(instances, machine(t, o))
			}
			x := indexOf(machines, instances, c.launched)
			NewWithT(t).Expect(x.owner(mac)).To(Equal(c.owner))
			NewWithT(t).Expect(len(x.running[mac]) > 0).To(Equal(c.inUse))
		})
	}
}

func TestAMachineLivesInItsInstanceToo(t *testing.T) {
	x := indexOf(nil, []Machine{machine(t, running)}, nil)
	NewWithT(t).Expect(x.byUID).To(HaveKey("vm-1"))
	NewWithT(t).Expect(indexOf(nil, []Machine{machine(t, stopped)}, nil).byUID).NotTo(HaveKey("vm-1"))
}

func TestLauncherAddressesExceptThePodNetworks(t *testing.T) {
	status := `[{"name":"ovn-kubernetes","interface":"eth0","mac":"0a:58:0a:80:00:01","default":true},{"name":"default/vlan100","interface":"pod37a8eec1ce1","mac":"52:54:00:AA:00:01"}]`
	NewWithT(t).Expect(launcherMACs(map[string]string{networkStatus: status})).To(Equal([]string{"52:54:00:aa:00:01"}))
	NewWithT(t).Expect(launcherMACs(map[string]string{networkStatus: "not JSON"})).To(BeEmpty())
	NewWithT(t).Expect(launcherMACs(nil)).To(BeEmpty())
}

func TestWhereNobodyKnowsEveryMachineLives(t *testing.T) {
	d, g := NewDirectory(nil), NewWithT(t)
	exists, _ := d.Exists(worker1)
	g.Expect(exists).To(BeTrue())
	g.Expect(d.InUse("52:54:00:aa:00:01")).To(BeTrue())
	g.Expect(d.Owner("52:54:00:aa:00:01")).To(Equal(pool.Owner{Unresolved: true}))

	// Everything was watched, but KubeVirt is not installed.
	d.seen = &picture{index: newIndex(), complete: func() bool { return true }, installed: make(chan struct{})}
	exists, _ = d.Exists(worker1)
	g.Expect(exists).To(BeTrue())
	g.Expect(d.Owner("52:54:00:aa:00:01")).To(Equal(pool.Owner{}), "nothing is on its way")

	close(d.seen.installed)
	exists, _ = d.Exists(worker1)
	g.Expect(exists).To(BeFalse())
}

// After events, an index equals one that is made anew from the objects that exist.
func TestEventsLeaveWhatAnIndexMadeAnewHas(t *testing.T) {
	macs := []string{"a", "b", "c"}
	some := func(t *rapid.T) []string { return macs[:rapid.IntRange(0, 3).Draw(t, "addresses")] }
	uid := func(t *rapid.T, kind string) types.UID {
		return types.UID(fmt.Sprint(kind, rapid.IntRange(0, 3).Draw(t, kind)))
	}
	of := func(t *rapid.T, kind string) Machine {
		m := Machine{ObjectMeta: metav1.ObjectMeta{UID: uid(t, kind), Name: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "name")}}
		for _, mac := range some(t) {
			m.Spec.Domain.Devices.Interfaces = append(m.Spec.Domain.Devices.Interfaces, nic{MACAddress: mac})
		}
		m.Spec.Domain.Devices.Interfaces = append(m.Spec.Domain.Devices.Interfaces, make([]nic, rapid.IntRange(0, 1).Draw(t, "without"))...)
		m.Status.Phase = rapid.SampledFrom([]string{"Running", "Succeeded"}).Draw(t, "phase")
		return m
	}
	rapid.Check(t, func(t *rapid.T) {
		x, machines, instances, pods := newIndex(), map[string]Machine{}, map[string]Machine{}, map[string]pod{}
		t.Repeat(map[string]func(*rapid.T){
			"machine":  func(t *rapid.T) { m := of(t, "vm"); machines[string(m.UID)] = m; x.setMachine(m) },
			"instance": func(t *rapid.T) { m := of(t, "vmi"); instances[string(m.UID)] = m; x.setInstance(m) },
			"pod": func(t *rapid.T) {
				name, p := string(uid(t, "pod")), pod{string(uid(t, "vmi")), some(t)}
				pods[name] = p
				x.setPod(name, p)
			},
			"no machine":  func(t *rapid.T) { name := string(uid(t, "vm")); delete(machines, name); x.remove(name) },
			"no instance": func(t *rapid.T) { name := string(uid(t, "vmi")); delete(instances, name); x.remove(name) },
			"no pod":      func(t *rapid.T) { name := string(uid(t, "pod")); delete(pods, name); x.removePod(name) },
			"": func(t *rapid.T) {
				anew := indexOf(slices.Collect(maps.Values(machines)), slices.Collect(maps.Values(instances)), nil)
				for name, p := range pods {
					anew.setPod(name, p)
				}
				if !reflect.DeepEqual(x, anew) {
					t.Fatalf("events left\n%+v\nmade anew it is\n%+v", x, anew)
				}
			},
		})
	})
}

func TestAMachineMadeAnewWhileNobodyWatchedIsAnother(t *testing.T) {
	d, x := NewDirectory(nil), newIndex()
	set := func(o client.Object) {
		x.setMachine(Machine{ObjectMeta: *o.(*metav1.PartialObjectMetadata).ObjectMeta.DeepCopy()})
	}
	made := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: uid}}
	}
	changes := d.changes(set, x.remove)
	changes.OnAdd(made("before"), false)
	changes.OnUpdate(made("before"), made("after"))
	NewWithT(t).Expect(x.byUID).To(And(HaveKey("after"), Not(HaveKey("before"))))
}

// The phases and their times are as KubeVirt writes them (kubevirt.io/api core/v1, VirtualMachineInstancePhaseTransitionTimestamp).
func TestWhenAMachineWasSwitchedOn(t *testing.T) {
	at := func(second int) string { return fmt.Sprintf("2026-11-27T10:00:%02dZ", second) }
	phase := func(name string, second int) string {
		return fmt.Sprintf(`{"phase":%q,"phaseTransitionTimestamp":%q}`, name, at(second))
	}
	for name, c := range map[string]struct {
		phases string
		on     int
	}{
		"it runs":                   {phase("Pending", 1) + "," + phase("Scheduled", 5) + "," + phase("Running", 9) + "," + phase("Succeeded", 30), 9},
		"it runs as far as is told": {phase("Pending", 1) + "," + phase("Scheduled", 5), 5},
		"nothing is told":           {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(nil, []Machine{machine(t, `{"metadata":{"name":"worker-1","namespace":"clusters-c1","uid":"vmi-1","creationTimestamp":"`+at(0)+`",`+owned+`},"status":{"phase":"Running","phaseTransitionTimestamps":[`+c.phases+`]}}`)}, nil)
			NewWithT(t).Expect(x.started(worker1).UTC().Format(time.RFC3339)).To(Equal(at(c.on)))
			x.remove("vmi-1")
			NewWithT(t).Expect(x.started(worker1)).To(BeZero())
		})
	}
}
