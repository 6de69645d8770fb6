package namedwatch_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cldmnky/oooi/internal/namedwatch"
)

// server serves watches of one Secret.
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
	secret = namedwatch.Object{Kind: namedwatch.Secret, NamespacedName: types.NamespacedName{Namespace: "a", Name: "s"}}
	first  = types.NamespacedName{Namespace: "a", Name: "first"}
	second = types.NamespacedName{Namespace: "a", Name: "second"}
)

func versioned(v string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}}
}

func TestFollowersAreToldOfChangesAndOfNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, told := NewWithT(t), &server{denied: true}, map[string]int{}
		w := namedwatch.New(s, func(who types.NamespacedName) { told[who.Name]++ })
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()

		w.Follow(first, secret)
		w.Follow(second, secret, namedwatch.Object{})
		time.Sleep(time.Minute)
		g.Expect(told).To(BeEmpty(), "it may not be watched")
		s.denied = false
		time.Sleep(time.Minute)
		g.Expect(told).To(Equal(map[string]int{"first": 1, "second": 1}), "it may be watched now, and what was missed is read")
		g.Expect(s.asked).To(HaveLen(1), "one watch for both")
		g.Expect(s.asked[0].FieldSelector).To(Equal("metadata.name=s"))

		s.open.Modify(versioned("7")) // told already: nothing more for a second
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
		s.open.Error(&metav1.Status{Code: 410}) // the history is lost
		time.Sleep(time.Minute)
		g.Expect(s.asked[2].ResourceVersion).To(BeEmpty())
		g.Expect(told["first"]).To(Equal(4), "what was missed is read")

		s.denied = true // an open watch does not notice
		time.Sleep(time.Minute)
		w.Reopen(secret)
		w.Reopen(namedwatch.Object{}) // nobody follows it
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

// The followers of an object that changes constantly are told once a second.
func TestWhatChangesAllTheTimeIsToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, s := 0, &serving{events: make(chan watch.Event)}
		w := namedwatch.New(s, func(types.NamespacedName) { told++ })
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		w.Follow(first, secret)
		go func() {
			defer close(s.events)
			for ctx.Err() == nil {
				select {
				case s.events <- watch.Event{Type: watch.Modified, Object: versioned("7")}:
				case <-ctx.Done():
				}
			}
		}()
		time.Sleep(time.Minute)
		NewWithT(t).Expect(told).To(BeNumerically("~", 61, 2))
		end()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
}

// serving sends the same events to every watch.
type serving struct {
	typedcore.CoreV1Interface
	typedcore.SecretInterface

	events chan watch.Event
}

func (s *serving) Secrets(string) typedcore.SecretInterface { return s }

func (s *serving) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewProxyWatcher(s.events), nil
}

// A watch that many share counts once: for the namespace of the follower that began it, and later for another's.
func TestAWatchIsOfOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := namedwatch.New(&server{denied: true}, func(types.NamespacedName) {})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		of := func(namespace string, i int) types.NamespacedName {
			return types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}
		}
		for i := range 5000 {
			g.Expect(w.Follow(of("a", i), secret)).To(BeTrue())
		}
		for i := range 1199 {
			g.Expect(w.Follow(of("b", i), namedwatch.Object{NamespacedName: of("b", i)})).To(BeTrue())
		}
		g.Expect(w.Follow(of("b", 1199), secret)).To(BeTrue())
		for i := range 5000 {
			w.Follow(of("a", i))
		}
		g.Expect(w.Follow(of("b", 1200), namedwatch.Object{NamespacedName: of("b", 1200)})).To(BeFalse(), "the shared one is b's now")
		end()
		g.Expect(<-ended).To(Succeed())
	})
}

// However many follow an object, only so many of a namespace's followers are told each second; another namespace's are told at once.
func TestManyFollowersOfWhatChangesAreToldOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told, s := NewWithT(t), map[string]int{}, &serving{events: make(chan watch.Event)}
		w := namedwatch.New(s, func(who types.NamespacedName) { told[who.Namespace]++ })
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		for i := range 1000 {
			w.Follow(types.NamespacedName{Namespace: "a", Name: strconv.Itoa(i)}, secret)
		}
		w.Follow(types.NamespacedName{Namespace: "b", Name: "one"}, secret)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		clear(told)
		s.events <- watch.Event{Type: watch.Modified, Object: versioned("7")}
		synctest.Wait()
		g.Expect(told).To(Equal(map[string]int{"a": 250, "b": 1}))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		g.Expect(told["a"]).To(BeNumerically("~", 250+10*20, 20))
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Expect(told).To(Equal(map[string]int{"a": 1000, "b": 1}), "each once")
		close(s.events)
		end()
		g.Expect(<-ended).To(Succeed())
	})
}

// A namespace with many followers is told each minute about objects beyond its share, and takes nothing from another's.
func TestWatchesAreSharedBetweenNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told := NewWithT(t), map[types.NamespacedName]int{}
		w := namedwatch.New(&server{denied: true}, func(who types.NamespacedName) { told[who]++ })
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		many := func(namespace string, n int) (watched int) {
			for i := range n {
				name := types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}
				if w.Follow(name, namedwatch.Object{NamespacedName: name}) {
					watched++
				}
			}
			return watched
		}
		g.Expect(many("a", 2500)).To(Equal(1200))
		g.Expect(many("b", 2500)).To(Equal(750), "its share of 1500")
		g.Expect(many("c", 10)).To(Equal(10), "who has few has them watched, whatever others have")
		for i := range 200 {
			many("more"+strconv.Itoa(i), 10)
		}
		g.Expect(many("late", 1)).To(BeZero(), "there is an end to it")
		late := types.NamespacedName{Namespace: "a", Name: "2400"}
		g.Expect(told).To(BeEmpty())
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		g.Expect(told[types.NamespacedName{Namespace: "late", Name: "0"}]).To(BeNumerically("~", 3, 1), "each minute, whoever else is told")
		g.Expect(told[late]).To(BeNumerically(">=", 1))
		for i := range 2000 {
			w.Follow(types.NamespacedName{Namespace: "a", Name: strconv.Itoa(i)})
		}
		g.Expect(w.Follow(late, namedwatch.Object{NamespacedName: late})).To(BeTrue(), "there is room again")
		end()
		g.Expect(<-ended).To(Succeed())
	})
}
