package leasekube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

var address = netip.MustParseAddr("192.168.100.20")

// loses is a connection that loses some answers of the API server after it has done what it was asked.
type loses struct {
	http.RoundTripper
	asked atomic.Int64
}

func (l *loses) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && l.asked.Add(1)%7 == 0 {
		_, _ = io.Copy(io.Discard, answer.Body)
		return nil, errors.Join(errors.New("the answer is lost"), answer.Body.Close())
	}
	return answer, err
}

func connected(t *testing.T, config *rest.Config) client.WithWatch {
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

func storeOf(c client.Client) *Store {
	return &Store{Client: c, Namespace: "default", Server: "c1-dhcp", Labels: func() map[string]string { return nil }, Log: slog.New(slog.DiscardHandler)}
}

// Two instances write one address as fast as they can, each answer of an update may be lost, and a writer starts anew with what it reads then.
// What a watch of the API server saw, version by version, is what the history says.
func TestTheHistoryIsWhatTheAPIServerSaw(t *testing.T) {
	g := NewWithT(t)
	cluster := envtest.For(t, true)
	api := connected(t, cluster.Admin)
	lossy := rest.CopyConfig(cluster.Admin)
	lossy.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &loses{RoundTripper: rt} })
	seen := versionsOf(t, api)

	var writers sync.WaitGroup
	var clock, lost, conflicts atomic.Int64
	clock.Store(time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC).Unix())
	for n := range 2 {
		store, luck := storeOf(connected(t, lossy)), rand.New(rand.NewPCG(uint64(n), 1))
		writers.Go(func() {
			for range 60 {
				_, err := moves(t, store, luck, lease.Seconds(clock.Add(1)))
				switch {
				case errors.Is(err, lease.ErrConflict) || errors.Is(err, lease.ErrExists):
					conflicts.Add(1)
				case err != nil:
					lost.Add(1)
				}
			}
		})
	}
	writers.Wait()
	g.Expect(lost.Load()).To(BeNumerically(">", 0), "answers were lost")
	g.Expect(conflicts.Load()).To(BeNumerically(">", 0), "writers met")

	last := &v1alpha1.DHCPLease{}
	g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: names.Lease("c1-dhcp", address)}, last)).To(Succeed())
	g.Eventually(func() string { return latest(seen()).ResourceVersion }).WithTimeout(time.Minute).Should(Equal(last.ResourceVersion))
	var ended []string
	for i, now := range seen()[1:] {
		if was := seen()[i].Spec; was.State == v1alpha1.LeaseBound && (now.Spec.State != v1alpha1.LeaseBound || now.Spec.MAC != was.MAC) {
			ended = append(ended, fmt.Sprintf("%s from %s", was.MAC, was.LastTransitionTime.UTC()))
		}
	}
	var told []string
	for _, f := range last.Spec.History {
		told = append(told, fmt.Sprintf("%s from %s", f.MAC, f.FromTime.UTC()))
	}
	t.Logf("%d versions, %d bindings that ended, %d answers lost, %d conflicts", len(seen()), len(ended), lost.Load(), conflicts.Load())
	g.Expect(len(ended)).To(BeNumerically(">", lease.Kept))
	g.Expect(told).To(Equal(ended[len(ended)-lease.Kept:]))

	t.Run("what others have written on it stays", func(t *testing.T) {
		g, store := NewWithT(t), storeOf(api)
		store.Labels = func() map[string]string { return map[string]string{names.LabelServer: "c1-dhcp"} }
		last.Labels = map[string]string{"backup": "nightly", names.LabelServer: "stale", names.LabelInfra: "stale"}
		last.Annotations, last.Finalizers = map[string]string{"note": "theirs"}, []string{"example.com/theirs"}
		g.Expect(api.Update(t.Context(), last)).To(Succeed())
		record, err := store.Get(t.Context(), address)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = store.Update(t.Context(), record)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(last), last)).To(Succeed())
		g.Expect(last.Labels).To(Equal(map[string]string{"backup": "nightly", names.LabelServer: "c1-dhcp"}))
		g.Expect(last.Annotations).To(HaveKeyWithValue("note", "theirs"))
		g.Expect(last.Finalizers).To(ConsistOf("example.com/theirs"))
	})

	t.Run("the longest is admitted, small for etcd, and read as it was written", func(t *testing.T) {
		g := NewWithT(t)
		last.Spec.History = History(longest())
		g.Expect(api.Update(t.Context(), last)).To(Succeed())
		text, err := json.Marshal(last)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(text)).To(BeNumerically("<", 32<<10))
		var read []lease.Past
		g.Expect(storeOf(api).ListPast(t.Context(), func(_ lease.Record, past []lease.Past) { read = past })).To(Succeed())
		g.Expect(read).To(Equal(longest()))
	})
}

// moves gives the address to one of two clients, renews it or releases it.
func moves(t *testing.T, store *Store, luck *rand.Rand, now lease.Seconds) (lease.Record, error) {
	was, err := store.Get(t.Context(), address)
	next := lease.Record{
		IP: address, Client: lease.Client{MAC: fmt.Sprintf("52:54:00:00:00:%02x", luck.IntN(2))}, State: lease.Bound, Since: now,
		Horizon: now.Time().Add(time.Duration(luck.IntN(3)) * time.Second), Version: was.Version,
	}
	switch {
	case errors.Is(err, lease.ErrNotFound):
		return store.Create(t.Context(), next)
	case err != nil:
		return next, err
	case was.State == lease.Bound && luck.IntN(3) == 0:
		next.Client, next.State = was.Client, lease.Released
	case next.Continues(was):
		next.Since = was.Since
	}
	return store.Update(t.Context(), next)
}

// versionsOf are the versions of the address's lease, as a watch tells them.
func versionsOf(t *testing.T, api client.WithWatch) func() []*v1alpha1.DHCPLease {
	list := &v1alpha1.DHCPLeaseList{}
	NewWithT(t).Expect(api.List(t.Context(), list)).To(Succeed())
	events, err := api.Watch(t.Context(), &v1alpha1.DHCPLeaseList{}, &client.ListOptions{Namespace: "default"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(events.Stop)
	var mu sync.Mutex
	var all []*v1alpha1.DHCPLease
	go func() {
		for e := range events.ResultChan() {
			if object, is := e.Object.(*v1alpha1.DHCPLease); is && e.Type != watch.Deleted {
				mu.Lock()
				all = append(all, object)
				mu.Unlock()
			}
		}
	}()
	return func() []*v1alpha1.DHCPLease {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func latest(all []*v1alpha1.DHCPLease) *v1alpha1.DHCPLease {
	if len(all) == 0 {
		return &v1alpha1.DHCPLease{}
	}
	return all[len(all)-1]
}

// longest is the longest history that the schema admits, of clients without hardware address.
func longest() []lease.Past {
	id := lease.Hex(bytes.Repeat([]byte{0xff}, 255))
	return slices.Repeat([]lease.Past{{
		Client: lease.Client{ID: id}, ClientID: id, Hostname: strings.Repeat("h", 63), End: lease.EndExpired,
		VM:   lease.VM{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("v", 253), UID: "6a2f0f1a-6d5c-4b4a-9d1e-0123456789ab"},
		From: time.Unix(1, 0).UTC(), Until: time.Unix(2, 0).UTC(),
	}}, lease.Kept)
}
