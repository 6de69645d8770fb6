package byname_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cldmnky/oooi/internal/byname"
)

// server of watches on one Secret.
type server struct {
	typedcore.CoreV1Interface
	typedcore.SecretInterface

	denied bool
	asked  []metav1.ListOptions
	open   *watch.FakeWatcher
}

func (s *server) Secrets(string) typedcore.SecretInterface { return s }

func (s *server) Watch(ctx context.Context, of metav1.ListOptions) (watch.Interface, error) {
	if s.denied {
		return nil, errors.New("forbidden")
	}
	s.asked = append(s.asked, of)
	opened := watch.NewFake()
	context.AfterFunc(ctx, opened.Stop)
	s.open = opened
	return opened, nil
}

var (
	secret = byname.Object{Kind: byname.Secret, NamespacedName: types.NamespacedName{Namespace: "a", Name: "s"}}
	first  = types.NamespacedName{Namespace: "a", Name: "first"}
	second = types.NamespacedName{Namespace: "a", Name: "second"}
)

func versioned(v string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}}
}

func TestFollowersAreToldOfChangesAndOfNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, told := NewWithT(t), &server{denied: true}, map[string]int{}
		w := byname.New(s, func(who types.NamespacedName) { told[who.Name]++ })
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()

		w.Follow(first, secret)
		w.Follow(second, secret, byname.Object{})
		time.Sleep(time.Minute)
		g.Expect(told).To(BeEmpty(), "it may not be watched")
		s.denied = false
		time.Sleep(time.Minute)
		g.Expect(told).To(Equal(map[string]int{"first": 1, "second": 1}), "it may be watched now, and what was missed is read")
		g.Expect(s.asked).To(HaveLen(1), "one watch for both")
		g.Expect(s.asked[0].FieldSelector).To(Equal("metadata.name=s"))

		s.open.Modify(versioned("7"))
		s.open.Action(watch.Bookmark, versioned("9"))
		synctest.Wait()
		g.Expect(told).To(Equal(map[string]int{"first": 2, "second": 2}))
		s.open.Stop() // as the API server does every few minutes
		time.Sleep(time.Minute)
		g.Expect(s.asked[1].ResourceVersion).To(Equal("9"))
		g.Expect(told["first"]).To(Equal(2), "nothing has changed meanwhile")

		w.Follow(second)
		s.open.Delete(versioned("11"))
		synctest.Wait()
		g.Expect(told).To(Equal(map[string]int{"first": 3, "second": 2}))
		s.open.Error(&metav1.Status{Code: 410}) // history is lost
		time.Sleep(time.Minute)
		g.Expect(s.asked[2].ResourceVersion).To(BeEmpty())
		g.Expect(told["first"]).To(Equal(4), "what was missed is read")

		s.denied = true // which an open watch does not notice
		time.Sleep(time.Minute)
		w.Reopen(secret)
		w.Reopen(byname.Object{}) // which nobody follows
		time.Sleep(time.Minute)
		g.Expect(told["first"]).To(Equal(4), "it may not be watched any more")
		s.denied = false
		time.Sleep(time.Minute)
		g.Expect(told["first"]).To(Equal(5), "it may be watched again")
		w.Reopen(secret)
		time.Sleep(time.Minute)
		g.Expect(told["first"]).To(Equal(6), "it may have been, all along")

		w.Follow(first)
		time.Sleep(time.Minute)
		g.Expect(s.open.IsStopped()).To(BeTrue())
		g.Expect(s.asked).To(HaveLen(5))
		end()
		g.Expect(<-ended).To(Succeed())
	})
}
