package dhcp

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/testkit/manyleases"
)

// scripted is an API server that answers each list with the next of some, and each watch with a new one.
func scripted(lists ...*v1alpha1.DHCPLeaseList) (client.WithWatch, chan client.ListOptions, chan *watch.FakeWatcher) {
	asked, watches := make(chan client.ListOptions, 10), make(chan *watch.FakeWatcher, 10)
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(daemon.Scheme()).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			lists[0].DeepCopyInto(into.(*v1alpha1.DHCPLeaseList))
			lists = lists[1:]
			asked <- *(&client.ListOptions{}).ApplyOptions(o)
			return nil
		},
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFake()
			watches <- w
			return w, nil
		},
	}), asked, watches
}

// leased is a lease of the stand-in in a version.
func leased(n, version int) *v1alpha1.DHCPLease {
	l := manyleases.Lease(n)
	l.ResourceVersion = strconv.Itoa(version)
	return &l
}

func listed(version int, all ...*v1alpha1.DHCPLease) *v1alpha1.DHCPLeaseList {
	list := &v1alpha1.DHCPLeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}
	for _, l := range all {
		list.Items = append(list.Items, *l)
	}
	return list
}

// A watch that ends by 410 has missed what happened since: a list tells it.
func TestWhatAWatchMissedAListTells(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(30 * time.Second)
	api, asked, watches := scripted(listed(10, leased(1, 5), leased(2, 6)), listed(30, leased(1, 25), leased(3, 20)))
	o := Options{Name: manyleases.Server, Log: slog.New(slog.DiscardHandler), Clock: clock.New(), Flags: daemon.Flags{Namespace: manyleases.Namespace}}
	i := newInstance(o, api)
	g.Expect(i.open(t.Context())).To(Succeed())
	go i.kube.Follow(t.Context(), api, i.server.list, i.server.learn, i.server.Table.Lost)
	known := func() (all []string) {
		for _, r := range i.server.Table.Records() {
			all = append(all, r.IP.String()+" "+strconv.FormatUint(r.Version, 10))
		}
		return all
	}
	var first, second *watch.FakeWatcher
	g.Eventually(watches).Should(Receive(&first))
	g.Expect(known()).To(Equal([]string{"10.1.0.1 5", "10.1.0.2 6"}))
	first.Modify(leased(1, 11))
	first.Modify(leased(1, 4)) // a late watch
	first.Delete(leased(1, 7))
	first.Add(leased(4, 12))
	g.Eventually(known).Should(Equal([]string{"10.1.0.1 11", "10.1.0.2 6", "10.1.0.4 12"}))

	gone := apierrors.NewResourceExpired("too old resource version").Status()
	g.Expect(gone.Code).To(BeEquivalentTo(http.StatusGone))
	first.Error(&gone)
	g.Eventually(watches).Should(Receive(&second))
	g.Expect(known()).To(Equal([]string{"10.1.0.1 25", "10.1.0.2 0", "10.1.0.3 20", "10.1.0.4 0"}), "0: the store has none any more, and Expire writes it again")
	second.Delete(leased(3, 31))
	g.Eventually(known).Should(ContainElement("10.1.0.3 0"))
	for range 2 {
		g.Expect(<-asked).To(And(HaveField("Limit", BeNumerically(">", 0)), HaveField("Raw", BeNil())), "a list of now: an API server gives any other as a whole")
	}
}
