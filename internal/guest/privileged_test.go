package guest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// privilegedOf is the binding that a plan wants for the gate's bridge.
func privilegedOf(g *gate) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: g.bridge.Namespace + "-privileged", Labels: map[string]string{"bridge": g.bridge.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:openshift:scc:privileged"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:dpf-operator-system"}},
	}
}

// privileging is a gate that keeps the binding.
func privileging(t *testing.T) (*gate, *rbacv1.ClusterRoleBinding) {
	t.Helper()
	g := newGate(t)
	want := privilegedOf(g)
	g.approving.Privileged = want
	t.Cleanup(func() {
		g.end()
		err := g.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), want.Name, metav1.DeleteOptions{})
		g.Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
	return g, want
}

func (g *gate) binding(name string) *rbacv1.ClusterRoleBinding {
	g.t.Helper()
	b, err := g.kube.RbacV1().ClusterRoleBindings().Get(g.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &rbacv1.ClusterRoleBinding{}
	}
	g.Expect(err).NotTo(HaveOccurred())
	return b
}

// granted awaits the binding as it is wanted, with another UID than before.
func (g *gate) granted(want *rbacv1.ClusterRoleBinding, before types.UID) types.UID {
	g.t.Helper()
	var uid types.UID
	g.Eventually(func(gg Gomega) {
		live := g.binding(want.Name)
		gg.Expect(live.UID).NotTo(Or(BeEmpty(), Equal(before)))
		gg.Expect(live.RoleRef).To(Equal(want.RoleRef))
		gg.Expect(live.Subjects).To(Equal(want.Subjects))
		gg.Expect(live.Labels).To(Equal(want.Labels))
		gg.Expect(g.see().Privileged).To(Equal(bridge.Grant{There: true, Ours: true, Grants: true}))
		uid = live.UID
	}).Should(Succeed())
	return uid
}

func TestDPFsPodsAreLetBePrivilegedWhateverOthersChange(t *testing.T) {
	g, want := privileging(t)
	g.open()
	uid, bindings := g.granted(want, ""), g.kube.RbacV1().ClusterRoleBindings()
	g.Expect(bindings.Delete(g.ctx, want.Name, metav1.DeleteOptions{})).To(Succeed())
	uid = g.granted(want, uid)
	live := g.binding(want.Name)
	live.Subjects = append(live.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"})
	_, err := bindings.Update(g.ctx, live, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.granted(want, uid)
}

func TestABindingOfOthersIsNotTouched(t *testing.T) {
	for name, change := range map[string]func(*rbacv1.ClusterRoleBinding){
		"that grants the same": func(*rbacv1.ClusterRoleBinding) {},
		"that grants more": func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:masters"})
		},
		"of another role": func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "view" },
	} {
		t.Run(name, func(t *testing.T) {
			g, want := privileging(t)
			theirs := want.DeepCopy()
			theirs.Labels = nil
			change(theirs)
			theirs, err := g.kube.RbacV1().ClusterRoleBindings().Create(g.ctx, theirs, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			f := g.behindFront("token")
			g.approving.Server = f.URL
			g.isActive()
			g.Eventually(func() bridge.Grant { return g.see().Privileged }).Should(Equal(bridge.Grant{There: true, Grants: name == "that grants the same"}))
			g.Expect(g.binding(want.Name)).To(Equal(theirs))
			g.Expect(g.kube.RbacV1().ClusterRoleBindings().Delete(g.ctx, want.Name, metav1.DeleteOptions{})).To(Succeed())
			g.granted(want, theirs.UID) // and by then whatever was done about theirs was done
			g.Expect(f.writes()).NotTo(ContainElement(HavePrefix("delete ")))
		})
	}
}

// Who may not grant approves all the same, and grants as soon as it may.
func TestARefusedBindingKeepsNoDPUWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		verb  string
		code  int
		sends string
	}{
		"it may not read it":    {http.MethodGet, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no such right"}`},
		"it may not create it":  {http.MethodPost, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no such right"}`},
		"a webhook there fails": {http.MethodPost, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"failed calling webhook: no such right"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g, want := privileging(t)
			f := g.behindFront("token")
			g.approving.Server = f.URL
			var may atomic.Bool
			f.answersSome(func(w http.ResponseWriter, r *http.Request) bool {
				if may.Load() || r.Method != c.verb || !strings.HasSuffix(r.URL.Path, "/clusterrolebindings") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.sends))
				return true
			})
			g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
			g.isActive()
			g.Eventually(func() string { return g.see().Privileged.Refused }).Should(ContainSubstring("no such right"))
			request := "priv-" + strings.ReplaceAll(name, " ", "-")
			g.asks(request, "dpu-1", "bootstrap")
			g.approved(request)
			g.Expect(slices.DeleteFunc(f.calls(), func(call string) bool { return call != "get /version" })).To(HaveLen(1), "the connection stays")
			may.Store(true)
			g.granted(want, "")
		})
	}
}
