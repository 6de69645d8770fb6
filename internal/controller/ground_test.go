package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// ground is a management cluster, with a hosted cluster when a test needs it. Only one test uses it at a time: tests would see each other's
// Nodes, StorageClasses and MetalLB.
type ground struct {
	*envtest.Cluster
	theHosted *envtest.Hosted
}

// grounds are those that no test uses. Each is started by its first test.
var grounds = make(chan *ground, 4)

// takes reserves a ground until the test has ended.
func takes(t *testing.T) *ground {
	t.Helper()
	g := <-grounds
	t.Cleanup(func() {
		if t.Failed() { // its objects would fail the next test
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

// hosted is one for all tests of a ground: each has there the objects with its own Infra's labels, and MetalLB, which it removes.
func (g *ground) hosted(t *testing.T) *envtest.Hosted {
	t.Helper()
	if g.theHosted == nil {
		var names []string
		for i := range 250 { // more names make a kubeconfig that is too large to be used
			names = append(names, fmt.Sprintf("kube-apiserver.w%d-c1.svc", i), fmt.Sprintf("kube-apiserver.w%d-b1.svc", i), fmt.Sprintf("kube-apiserver.w%d-orchid-b1.svc", i), fmt.Sprintf("kube-apiserver.w%d-s-b1.svc", i))
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
