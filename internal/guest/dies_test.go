package guest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// deadly is a hosted API at whose writes managers die: before the first of each kind, and after the second, whose answer is lost.
type deadly struct {
	mu    sync.Mutex
	count map[string]int // of writes, by kind; nil: nobody dies
	dead  bool           // no more calls get through
	died  chan struct{}  // receives when a manager dies
}

// meets answers in place of a front.
func (d *deadly) meets(f *front) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		passes, heard := d.judge(r)
		if heard {
			return false
		}
		if passes {
			f.proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context()))) // who dies does not take it back
			d.died <- struct{}{}
		}
		panic(http.ErrAbortHandler)
	}
}

func (d *deadly) judge(r *http.Request) (passes, heard bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead || r.Method == http.MethodGet || d.count == nil {
		return !d.dead, !d.dead
	}
	kind := r.Method + " " + strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")[2]
	d.count[kind]++
	d.dead = d.count[kind] <= 2
	if d.count[kind] == 1 {
		d.died <- struct{}{}
	}
	return d.count[kind] > 1, d.count[kind] > 2
}

// until something is so, each manager that dies is replaced by another, which remembers nothing.
func (g *gate) until(d *deadly, is func() bool) {
	g.t.Helper()
	g.Eventually(func() bool {
		select {
		case <-d.died:
			g.end()
			d.mu.Lock()
			d.dead = false
			d.mu.Unlock()
			g.begins()
		default:
		}
		g.see()
		return is()
	}).Should(BeTrue(), func() string { return g.t.Name() })
}

// Whatever a manager had begun in a hosted cluster as it died, the next one comes to the same end: one binding, which is the bridge's, and one
// certificate for each DPU. The binding has no owner there: it goes with the hosted cluster.
func TestAHostedClusterComesToTheSameEndWhereverTheManagerDies(t *testing.T) {
	g, want := privileging(t)
	f, d := g.behindFront("token"), &deadly{count: map[string]int{}, died: make(chan struct{}, 1)}
	g.approving.Server = f.URL
	f.answersSome(d.meets(f))
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	both := []string{"one", "two"}
	for _, name := range both {
		g.asks(name, "dpu-1", "bootstrap")
	}
	approved := func() (n int) {
		for _, name := range both {
			if approvalOf(g.live(name)) != nil {
				n++
			}
		}
		return n
	}
	granted := bridge.Grant{There: true, Ours: true, Grants: true}
	g.until(d, func() bool { return approved() > 0 && g.see().Privileged == granted && g.see().Active })
	first := g.binding(want.Name)
	changed := first.DeepCopy()
	changed.Subjects = append(changed.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"})
	_, err := g.kube.RbacV1().ClusterRoleBindings().Update(g.ctx, changed, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.until(d, func() bool {
		uid := g.binding(want.Name).UID
		return uid != "" && uid != first.UID && g.see().Privileged == granted && g.see().Active
	})
	d.mu.Lock()
	g.Expect(d.count).To(Equal(map[string]int{"POST clusterrolebindings": 3, "DELETE clusterrolebindings": 2, "PUT certificatesigningrequests": 2}), "a manager died before and after each, and none was done twice")
	d.count = nil
	d.mu.Unlock()
	g.granted(want, first.UID)
	all, err := g.kube.RbacV1().ClusterRoleBindings().List(g.ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	var ours []string
	for _, b := range all.Items {
		for _, by := range b.ManagedFields {
			if by.Manager == names.ManagerFieldOwner {
				ours = append(ours, b.Name)
			}
		}
	}
	g.Expect(ours).To(ConsistOf(want.Name), "nothing else is left")
	g.asks("three", "dpu-1", "bootstrap")
	g.waits("three")
	g.Expect(approved()).To(Equal(1), "whoever approved it, and did not hear so")
}
