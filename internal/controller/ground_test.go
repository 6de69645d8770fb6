package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// ground is a management cluster, and beside it a hosted one when a test wants it. It is one test's at a time: what that does with Nodes,
// StorageClasses or MetalLB, another would see.
type ground struct {
	*envtest.Cluster
	theHosted *envtest.Hosted
}

// grounds that no test stands on. Each is started by the first test that does.
var grounds = make(chan *ground, 4)

// takes a ground until the test has ended.
func takes(t *testing.T) *ground {
	t.Helper()
	g := <-grounds
	t.Cleanup(func() {
		if t.Failed() { // what it left would fail the next
			if err := g.stop(); err != nil {
				t.Log(err)
			}
			g = &ground{}
		}
		grounds <- g
	})
	if g.Cluster == nil {
		started, err := envtest.Start(false)
		if err != nil {
			t.Fatal(err)
		}
		started.Manager.Wrap(used.of)
		g.Cluster = started
	}
	return g
}

// hosted is one cluster for all tests of a ground: each has there what its own Infra's labels name, and MetalLB, which it takes away.
func (g *ground) hosted(t *testing.T) *envtest.Hosted {
	t.Helper()
	if g.theHosted == nil {
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("kube-apiserver.w%d-c1.svc", i), fmt.Sprintf("kube-apiserver.w%d-b1.svc", i), fmt.Sprintf("kube-apiserver.w%d-orchid-b1.svc", i))
		}
		var err error
		if g.theHosted, err = envtest.StartHosted(names...); err != nil {
			t.Fatal(err)
		}
	}
	return g.theHosted
}

func (g *ground) stop() error {
	var errs []error
	if g.Cluster != nil {
		errs = append(errs, g.Cluster.Stop())
	}
	if g.theHosted != nil {
		errs = append(errs, g.theHosted.Stop())
	}
	return errors.Join(errs...)
}
