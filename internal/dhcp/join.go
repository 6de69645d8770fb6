package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// An address that is released goes to another client once every instance has forgotten its holder (dhcp-rules.md#lease-7). So each instance must
// know of all that serve, however late its watch is. It says in the DHCPServer's status whom it knows of, and serves when all others that
// report know of it (dhcp-rules.md#lease-14).

// named returns the addresses of the instances that a DHCPServer wants or that report, sorted. One that is no longer wanted reports until the
// manager removes that from the status, once the instance's pod is gone.
func named(server *v1alpha1.DHCPServer) []netip.Addr {
	var all []netip.Addr
	for _, ip := range server.Spec.NetworkConfig.ServerIPs() {
		all = append(all, parsed(string(ip))...)
	}
	for _, i := range server.Status.Instances {
		all = append(all, parsed(string(i.IP))...)
	}
	return sorted(all)
}

// known returns the addresses of the instances that the one at self must reckon with, sorted: those that are named, and those that others may
// serve on the strength of what it said.
func known(server *v1alpha1.DHCPServer, self v1alpha1.IPAddress) []netip.Addr {
	return sorted(append(named(server), saidBy(server, self)...))
}

// saidBy returns which instances the one at an address said that it knows of, sorted.
func saidBy(server *v1alpha1.DHCPServer, at v1alpha1.IPAddress) (all []netip.Addr) {
	for _, i := range server.Status.Instances {
		if i.IP == at {
			for _, ip := range i.ServesWith {
				all = append(all, parsed(string(ip))...)
			}
		}
	}
	return sorted(all)
}

// mayServe says what the instance with a number waits for before it promises any address; nil for nothing.
func mayServe(server *v1alpha1.DHCPServer, number int) error {
	wanted := server.Spec.NetworkConfig.ServerIPs()
	if number >= len(wanted) {
		return errLeaves(number)
	}
	self := v1alpha1.IPAddress(wanted[number])
	for _, at := range named(server) {
		other := v1alpha1.IPAddress(at.String())
		switch {
		case !slices.Contains(saidBy(server, self), at):
			return fmt.Errorf("this instance has not yet reported that it knows of %s", at)
		case other != self && reports(server, other, 1-number) && !slices.ContainsFunc(saidBy(server, other), func(a netip.Addr) bool { return a.String() == string(self) }):
			return fmt.Errorf("the instance at %s does not know of this one yet: it will when its pod runs this release and reaches the API server", at)
		}
	}
	return nil
}

// reports says whether the daemon of an instance has written to the status, which each does before it serves. Those of older releases say nothing of
// instances.
func reports(server *v1alpha1.DHCPServer, at v1alpha1.IPAddress, number int) bool {
	said := v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, number)
	return len(saidBy(server, at)) > 0 || meta.FindStatusCondition(server.Status.Conditions, said) != nil
}

// notOlder says whether a DHCPServer was read at a version or after it; false if the version is not known.
func notOlder(server *v1alpha1.DHCPServer, than string) bool {
	order, err := resourceversion.CompareResourceVersion(server.ResourceVersion, than)
	return err == nil && order >= 0
}

func errLeaves(number int) error {
	return fmt.Errorf("%s is not set: this instance is to go, and serves as before until its pod does", serverField(number))
}

func parsed(ip string) []netip.Addr {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	return []netip.Addr{a}
}

func sorted(all []netip.Addr) []netip.Addr {
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// memory is which instances are known, by the newest version of the DHCPServer that was served.
type memory struct {
	latest string
	known  []netip.Addr
}

// takes returns the instances that are known with an object, in which these are. One that is older than another before forgets none: a watch may
// begin with what was long ago, and after a restore of etcd an instance that serves may be in none of its objects.
func (m *memory) takes(server *v1alpha1.DHCPServer, these []netip.Addr) []netip.Addr {
	if m.latest != "" && !notOlder(server, m.latest) {
		m.known = sorted(slices.Concat(these, m.known))
		return m.known
	}
	m.latest, m.known = server.ResourceVersion, these
	return these
}

// rereads is how long after a failure the DHCPServer is read again.
const rereads = time.Second

// join waits until this instance may serve. Until then it renews only the holders that its copy names.
func (i *instance) join(ctx context.Context) error {
	way := joining{number: i.Number}
	for {
		served := i.lastKept()
		err := way.step(served, func() (string, error) {
			now := &v1alpha1.DHCPServer{}
			err := i.client.Get(ctx, client.ObjectKeyFromObject(served), now)
			return now.ResourceVersion, err
		})
		i.ready.Set(checkLeases, err)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.kept:
		case <-time.After(rereads):
		}
	}
}

// joining is how far an instance has come on the way to serve.
type joining struct {
	number int
	least  string // the version of the DHCPServer that it has to serve
}

// step says what the instance still waits for. The watch may tell what was long ago, so the instance asks which version there is now, and
// waits until it serves that.
func (j *joining) step(served *v1alpha1.DHCPServer, now func() (version string, err error)) (err error) {
	if served == nil {
		return errors.New("the DHCPServer has not been read yet")
	}
	if j.least == "" {
		if j.least, err = now(); err != nil {
			return fmt.Errorf("reading the DHCPServer: %w", err)
		}
	}
	if !notOlder(served, j.least) {
		return fmt.Errorf("version %s of the DHCPServer is served, and %s is needed", served.ResourceVersion, j.least)
	}
	return mayServe(served, j.number)
}

// keeps notes a DHCPServer that is served now, and would be after a restart. Only then may others rely on whom it names.
func (i *instance) keeps(server *v1alpha1.DHCPServer) {
	i.mu.Lock()
	i.onDisk = server
	i.mu.Unlock()
	select {
	case i.kept <- struct{}{}:
	default:
	}
	i.wake()
}

func (i *instance) lastKept() *v1alpha1.DHCPServer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.onDisk
}
