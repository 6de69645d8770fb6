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
	for _, ip := range server.Status.ServesWith(at) {
		all = append(all, parsed(string(ip))...)
	}
	return sorted(all)
}

// mayServe says what the instance with a number, whose address is self, waits for before it promises any address; nil for nothing.
func mayServe(server *v1alpha1.DHCPServer, number int, self v1alpha1.IPAddress) error {
	own, others := saidBy(server, self), false // others: that say whom they know of
	for _, at := range named(server) {
		other := v1alpha1.IPAddress(at.String())
		says := saidBy(server, other)
		switch {
		case !slices.Contains(own, at):
			return fmt.Errorf("this instance has not yet reported that it knows of %s", at)
		case other == self || len(says) == 0:
		case !slices.ContainsFunc(says, func(a netip.Addr) bool { return a.String() == string(self) }):
			return fmt.Errorf("the instance at %s does not know of this one yet: it will when it reaches the API server; if its node is lost, see NodeLost", at)
		default:
			others = true
		}
	}
	if number > 0 && !others && meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionConfigAccepted) != nil {
		return errors.New("the first instance is of an older release, which knows of no other: update its pod, as Progressing says")
	}
	return nil
}

// notOlder says whether a DHCPServer was read at a version or after it; false if the version is not known.
func notOlder(server *v1alpha1.DHCPServer, than string) bool {
	order, err := resourceversion.CompareResourceVersion(server.ResourceVersion, than)
	return err == nil && order >= 0
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

// memory is which instances are known, by the newest version of the DHCPServer that was seen.
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
		newest, self := i.seen()
		err := way.step(newest, self, func() (string, error) {
			now := &v1alpha1.DHCPServer{}
			err := i.client.Get(ctx, client.ObjectKeyFromObject(newest), now)
			return now.ResourceVersion, err
		})
		i.ready.Set(checkLeases, err)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.news:
		case <-time.After(rereads):
		}
	}
}

// joining is how far an instance has come on the way to serve.
type joining struct {
	number int
	least  string // the version of the DHCPServer that it has to have seen
}

// step says what the instance still waits for. The watch may tell what was long ago, so the instance asks which version there is now, and
// waits until it has seen that.
func (j *joining) step(seen *v1alpha1.DHCPServer, self v1alpha1.IPAddress, now func() (version string, err error)) (err error) {
	if seen == nil {
		return errors.New("the DHCPServer has not been read yet")
	}
	if j.least == "" {
		if j.least, err = now(); err != nil {
			return fmt.Errorf("reading the DHCPServer: %w", err)
		}
	}
	if !notOlder(seen, j.least) {
		return fmt.Errorf("the watch has told version %s of the DHCPServer, and there is %s", seen.ResourceVersion, j.least)
	}
	return mayServe(seen, j.number, self)
}

// learn takes in which instances a DHCPServer names. That counts though its configuration may be refused.
func (i *instance) learn(server *v1alpha1.DHCPServer) {
	i.mu.Lock()
	i.newest, i.deleted = server, false
	i.mu.Unlock()
	if i.client == nil {
		return // a lease file has one instance
	}
	_, self := i.seen()
	all := i.memory.takes(server, known(server, self))
	if served := i.server.config.Load(); served != nil && !slices.Equal(served.Instances, all) {
		also := *served
		also.Instances = all
		i.server.Configure(also)
	}
	select {
	case i.news <- struct{}{}:
	default:
	}
}

// seen returns the newest DHCPServer, and the address of this instance: the one that it serves, else the one that it is to have.
func (i *instance) seen() (newest *v1alpha1.DHCPServer, self v1alpha1.IPAddress) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch served := i.server.config.Load(); {
	case served != nil:
		self = v1alpha1.IPAddress(served.Server.String())
	case i.newest != nil && i.Number < len(i.newest.Spec.NetworkConfig.ServerIPs()):
		self = v1alpha1.IPAddress(i.newest.Spec.NetworkConfig.ServerIPs()[i.Number])
	}
	return i.newest, self
}
