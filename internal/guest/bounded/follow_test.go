package bounded

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// Otherwise 500 changes a second would have 5,000 objects sorted and compared 500 times a second.
func TestManyChangesAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told, last := NewWithT(t), 0, 0
		a := hostedAPI(func(r *http.Request) string {
			if !r.URL.Query().Has("watch") {
				return `{"metadata":{"resourceVersion":"1"},"items":[]}`
			}
			var events strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&events, `{"type":"ADDED","object":{"metadata":{"name":"n%d","resourceVersion":"1"}}}`, i)
			}
			return events.String()
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Follow(ctx, a, things, func(all []string) { told++; last = len(all) })
		}()
		time.Sleep(3 * pace.TellEvery)
		synctest.Wait()
		g.Expect(last).To(Equal(1000))
		g.Expect(told).To(BeNumerically("<=", 3))
		stop()
		g.Expect(<-ended).To(MatchError(context.Canceled))
		a.Close()
		g.Expect(kept.of).NotTo(HaveKey(a.to), "what was kept is given back")
	})
}

// Any user of a hosted cluster can create Services. More of them than we keep do not end a visit: Over stands for them until there are
// fewer.
func TestMoreThanIsKeptIsStoodFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		many := atomic.Bool{}
		many.Store(true)
		page := func(n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(`{"metadata":{"namespace":"a","name":"s%d","resourceVersion":"1"},"spec":{"type":"ClusterIP"}}`, i))
			}
			return `{"metadata":{"resourceVersion":"1"},"items":[` + strings.Join(all, ",") + `]}`
		}
		a := hostedAPI(func(r *http.Request) string {
			switch {
			case r.URL.Query().Has("watch"):
				return ""
			case many.Load():
				return page(MostObjects + 1)
			}
			return page(2)
		})
		const tooMany = "too many"
		guarded, kept := things, []string{}
		guarded.Over = ptr.To(tooMany)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Follow(ctx, a, guarded, func(all []string) { kept = all }) }()
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(kept).To(Equal([]string{tooMany}))
		many.Store(false)
		time.Sleep(CrowdedPause)
		synctest.Wait()
		g.Expect(kept).To(Equal([]string{"s0", "s1"}))
		stop()
		<-ended
		a.Close()
	})
}
