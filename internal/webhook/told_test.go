package webhook_test

import (
	"net"
	"net/http"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hears looks for events where kubectl describe looks: at the webhook's configuration.
func (w *world) hears(action string) func(Gomega) {
	return func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		uid := stored(w, w.configuration()).GetUID()
		g.Expect(all.Items).To(ContainElement(And(HaveField("Reason", "ReviewsTurnedAway"), HaveField("Action", action), HaveField("Type", corev1.EventTypeWarning),
			HaveField("Regarding.UID", uid), HaveField("Note", ContainSubstring("the last from 127.0.0.2: ")))))
	}
}

// An admin sees at the webhook's configuration that reviews were not judged, or connections not accepted.
func TestAnAdminHearsWhoIsTurnedAway(t *testing.T) {
	w := newWorld(t)
	w.operator()
	code, _, err := w.stranger().posts([]byte("{}"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(code).To(Equal(http.StatusBadRequest))
	w.Eventually(w.hears("NoReview")).Should(Succeed())

	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 300 { // more than one address may have
		conn, err := from.DialContext(w.ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)))
		w.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { conn.Close() })
	}
	w.Eventually(w.hears("TooManyConnections")).Should(Succeed())
}
