package diagnosecli_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnosecli"
	"github.com/cldmnky/oooi/internal/names"
)

// watched says how many leases were in one answer, at most.
type watched struct {
	client.Reader
	most *int
}

func (w watched) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := w.Reader.List(ctx, into, options...)
	if leases, are := into.(*v1alpha1.DHCPLeaseList); are {
		*w.most = max(*w.most, len(leases.Items))
	}
	return err
}

func lease(i int) *v1alpha1.DHCPLease {
	ip := fmt.Sprintf("10.0.%d.%d", i/200, i%200+1)
	l := &v1alpha1.DHCPLease{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-" + ip, Labels: map[string]string{names.LabelInfra: "c1"}}}
	l.Spec = v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip), MAC: v1alpha1.MACAddress(fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256)),
		ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NowMicro()}
	l.Spec.History = []v1alpha1.FormerLease{{MAC: "52:54:00:ff:00:01", UntilTime: metav1.Now(), Ended: v1alpha1.LeaseEndExpired}}
	return l
}

// A pool may have 65,536 leases, each with a history of 32 KiB; who reads them every second is the manager, which has 256 MiB.
func TestLeasesAreReadInPartsAndSoManyOnly(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	const most = 4000
	one := infra()
	g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}, one)
	admin, numbers, errs := g.as(""), make(chan int), make(chan error, most+1)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range numbers {
				errs <- admin.Create(ctx, lease(i))
			}
		})
	}
	for i := range most + 1 {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	for range most + 1 {
		g.Expect(<-errs).NotTo(HaveOccurred())
	}

	atOnce := 0
	reader := watched{admin, &atOnce}
	f := diagnosecli.See(ctx, reader, one, time.Now())
	g.Expect(f.Leases.Unread).To(BeEmpty())
	g.Expect(f.Leases.Is).To(HaveLen(most+1), "a command reads all")
	g.Expect(atOnce).To(Equal(500))
	for _, l := range f.Leases.Is {
		g.Expect(l.ManagedFields).To(BeNil())
		g.Expect(l.Spec.History).To(BeNil())
	}
	f = diagnosecli.Glance(ctx, reader, one, time.Now(), nil)
	g.Expect(f.Leases.Unread).To(Equal("there are more than 4000; see oooi diagnose and oooi leases list"))
	g.Expect(f.Leases.Is).To(BeEmpty())
	g.Expect(admin.Delete(ctx, lease(most))).To(Succeed())
	f = diagnosecli.Glance(ctx, reader, one, time.Now(), nil)
	g.Expect(f.Leases.Unread).To(BeEmpty())
	g.Expect(f.Leases.Is).To(HaveLen(most))
}
