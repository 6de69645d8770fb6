package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestChildrenWaitForTheFirstRoundOfInfrasOnly(t *testing.T) {
	turnTest(t, func(t *testing.T, turn *turn, infras requests, waits func() time.Duration) {
		infras.Add(infra("a"))
		infras.Add(infra("b"))
		infras.Get()
		turn.taken()
		infras.Done(infra("a"))
		infras.Add(infra("a")) // as if its children reported
		if got := waits(); got != longestWait {
			t.Errorf("with an Infra that had no turn a child waits %s, want %s", got, longestWait)
		}
		if next, _ := infras.Get(); next != infra("b") {
			t.Errorf("%s comes again before b came once", next.Name)
		}
		turn.taken()
		if got := waits(); got != 0 {
			t.Errorf("when each Infra had its turn a child waits %s", got)
		}
		infras.Get()
		turn.taken()
		infras.Add(infra("c"))
		if got := waits(); got != 0 {
			t.Errorf("for an Infra that comes later a child waits %s", got)
		}
	})
}

func TestChildrenWithoutInfrasWaitOnce(t *testing.T) {
	turnTest(t, func(t *testing.T, _ *turn, _ requests, waits func() time.Duration) {
		if got := waits() + waits(); got != longestWait {
			t.Errorf("two children written by hand wait %s together, want %s", got, longestWait)
		}
	})
}

func turnTest(t *testing.T, test func(*testing.T, *turn, requests, func() time.Duration)) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurn()
		infras := turn.queue("infra", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		defer infras.ShutDown()
		test(t, turn, infras, func() time.Duration {
			before := time.Now()
			turn.await(t.Context())
			return time.Since(before)
		})
	})
}

func infra(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}
