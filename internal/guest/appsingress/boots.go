package appsingress

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Boots are told which workers join. Where no Nodes are read for *.apps, nobody is told.
type Boots interface {
	// Follows says that an Infra's Nodes are watched from now on.
	Follows(infra types.NamespacedName)
	// Joined is told of each new Node once, in turn.
	Joined(ctx context.Context, infra types.NamespacedName, n Joined)
	// Leaves says that they are not watched any more. It may be told so again.
	Leaves(infra types.NamespacedName)
}

// Joined is a Node that was created while we watched, and is Ready for the first time. Whoever may write the Node chooses the address, and what it
// says.
type Joined struct {
	Address netip.Addr // its first IPv4 address of type InternalIP: leases have no others, and each address would be looked up
	Created time.Time  // by the hosted API server
	Says    time.Time  // since when it is Ready, as it says
	Seen    time.Time  // when we saw that
}

// Limits of what a hosted cluster whose Nodes come and go has the management cluster read and write, which is a lease each time.
const (
	joinsPerSecond = 5
	joinsAtOnce    = 20
	mostJoining    = 1000
)
