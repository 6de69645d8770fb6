package proxy

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A backend's name is its cluster's name: Envoy needs the new cluster before a listener refers to it, and the old one until then.
func TestARenamedBackendRefusesNobody(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("name-0", port, a, "a.example.com"))
	s := mustOpen(t, port, "a.example.com")
	var clients sync.WaitGroup
	ended, refused, served := make(chan struct{}), make([]error, 3), make([]int, 3)
	for n := range refused {
		clients.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if _, err := reached(port, "a.example.com"); err != nil {
					refused[n] = errors.Join(refused[n], err)
				}
				served[n]++
			}
		})
	}
	for n := range 10 {
		name := fmt.Sprintf("name-%d", n+1)
		l.serves(route(name, port, a, "a.example.com"))
		g.Eventually(func() bool {
			l.proxy.mu.Lock()
			defer l.proxy.mu.Unlock()
			return l.proxy.told.Backends[0].Name == name && l.proxy.ads.Verdict().Accepted
		}, 10*time.Second).Should(BeTrue())
	}
	close(ended)
	clients.Wait()
	t.Logf("%v connections", served)
	g.Expect(errors.Join(refused...)).NotTo(HaveOccurred())
	g.Expect(s.alive()).To(Succeed(), "a stream of the first name")
}
