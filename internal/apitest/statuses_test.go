package apitest

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Workers ask both instances of a proxy for one name, at different times. One that has forgotten it must still be able to write its status: what
// two owners write of one item of a list, and one takes back, is left in parts.
func TestEachInstanceTakesBackTheNamesThatItWasAskedFor(t *testing.T) {
	g := NewWithT(t)
	server := object(read[map[string]map[string]any](t, "testdata/base.yaml")["ProxyServer"])
	g.Expect(api.Create(t.Context(), server)).To(Succeed())
	defer func() { g.Expect(api.Delete(t.Context(), server)).To(Succeed()) }()
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	ours, err := client.New(admin, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	at := func(minute int) metav1.Time { return metav1.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC) }
	asked := func(ip v1alpha1.IPAddress, minute int) *ac.UnmatchedNameApplyConfiguration {
		return ac.UnmatchedName().WithName("a.example.com").WithPort(443).WithIP(ip).WithLastTime(at(minute))
	}
	writes := func(instance int, all ...*ac.UnmatchedNameApplyConfiguration) {
		t.Helper()
		owner := client.FieldOwner(names.InstanceFieldOwner("oooi-proxy", instance))
		status := ac.ProxyServer(server.GetName(), server.GetNamespace()).WithStatus(ac.ProxyServerStatus().WithUnmatchedNames(all...))
		g.Expect(ours.Status().Apply(t.Context(), status, owner, client.ForceOwnership)).To(Succeed())
	}
	writes(0, asked("192.168.100.3", 0))
	writes(1, asked("192.168.100.6", 10))
	writes(1)
	is := &v1alpha1.ProxyServer{}
	g.Expect(ours.Get(t.Context(), client.ObjectKeyFromObject(server), is)).To(Succeed())
	g.Expect(is.Status.UnmatchedNames).To(HaveLen(1))
	g.Expect(is.Status.UnmatchedNames[0].LastTime.UTC()).To(Equal(at(0).UTC()))
}
