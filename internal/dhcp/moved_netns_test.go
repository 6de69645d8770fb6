//go:build netns

package dhcp_test

import (
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/movecli"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// A daemon of one cluster leases an address, the leases are carried to another cluster, and the daemon there has them: the client keeps its
// address, and nobody else gets it.
func TestALeaseThatIsCarriedToAnotherClusterIsItsClientsAlone(t *testing.T) {
	from, to := newDaemonInCluster(t), newDaemonInCluster(t)
	from.Expect(from.api.Create(t.Context(), dhcpServer())).To(Succeed())
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1", Annotations: map[string]string{names.AnnotationGiven: "{}"}}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: "vlan100"} // the schema admits no loopback, and nothing is made from it
	from.Expect(from.api.Create(t.Context(), infra)).To(Succeed())
	from.starts()
	from.isReady()
	from.answered("127.0.0.10", one)
	from.stop()

	scheme := daemon.Scheme()
	from.Expect(nad.AddToScheme(scheme)).To(Succeed())
	admin, err := client.New(from.config, client.Options{Scheme: scheme})
	from.Expect(err).NotTo(HaveOccurred())
	m, err := movecli.Read(t.Context(), admin, types.NamespacedName{Namespace: "default", Name: "c1"}, time.Now())
	from.Expect(err).NotTo(HaveOccurred())
	from.Expect(m.Leases).To(HaveLen(1))
	to.Expect(to.api.Create(t.Context(), &m.Leases[0])).To(Succeed())
	to.Expect(to.api.Create(t.Context(), dhcpServer())).To(Succeed())
	to.starts()
	to.isReady()
	to.Eventually(func() string { // under load it is silent first
		to.Expect(to.asks("127.0.0.10", two)).To(BeNil()) // a NAK is broadcast, which the loopback device does not carry
		return get("http://127.0.0.1:9402/metrics")
	}).WithTimeout(time.Minute).Should(ContainSubstring(`oooi_dhcp_packets_received_total{kind="renewing",outcome="nak/held-by-another"}`))
	to.Expect(to.answered("127.0.0.10", one).MessageType()).To(Equal(dhcpv4.MessageTypeAck))
	to.Eventually(func() map[string]string { l, _ := to.lease("127.0.0.10"); return l.Labels }).WithTimeout(20 * time.Second).
		Should(HaveKeyWithValue(names.LabelOwnerUID, "uid-1"))
}
