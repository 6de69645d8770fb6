package proxy

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// leaseOf is the lease of a worker, which dials from its address.
func leaseOf(ip string) *v1alpha1.DHCPLease {
	return &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "c1-dhcp-" + ip, Labels: map[string]string{names.LabelInfra: "c1"}},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip), MAC: "52:54:00:00:00:01", State: v1alpha1.LeaseBound},
	}
}

func TestEnvoyTellsWhatEachWorkerSaid(t *testing.T) {
	g := NewWithT(t)
	ignition, dead, port := newTarget(t, "ignition"), newTarget(t, "dead"), freePort(t)
	l := prepareLab(t, route("ignition", port, ignition, "ignition.example.com"), route("konnectivity", port, dead, "konnectivity.example.com"), route("apps", port, ignition, "*.apps.example.com"))
	l.server.Labels = map[string]string{names.LabelInfra: "c1"}
	c := cluster(l, leaseOf("127.0.0.9"), leaseOf("127.0.0.10"), leaseOf("127.0.0.11"))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	g.Expect(dead.listener.Close()).To(Succeed())
	stages := func(ip string) func() map[v1alpha1.StageName]v1alpha1.Stage {
		return func() map[v1alpha1.StageName]v1alpha1.Stage {
			lease := leaseOf(ip)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)).To(Succeed())
			return lease.Stages()
		}
	}
	// One whose connection ends before it is used leaves it to nobody.
	for range 20 {
		conn, err := from("127.0.0.11").Dial("tcp", at(port))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.Close()).To(Succeed())
	}
	began := time.Now()
	s, err := openFrom("127.0.0.9", port, "ignition.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(stages("127.0.0.9"), 20*time.Second).Should(HaveKeyWithValue(v1alpha1.StageIgnitionHello, And(
		HaveField("Result", v1alpha1.StageForwarded), HaveField("ServerName", "ignition.example.com"), HaveField("ReceivedBytes", int64(0)),
		HaveField("FirstTime.Time", BeTemporally("~", began, 5*time.Second)))), "while it is open")
	g.Expect(s.alive()).To(Succeed())
	g.Expect(s.Close()).To(Succeed())
	g.Eventually(stages("127.0.0.9"), 20*time.Second).Should(HaveKeyWithValue(v1alpha1.StageIgnitionHello, HaveField("ReceivedBytes", BeNumerically(">", 500))))

	for source, name := range map[string]string{"127.0.0.9": "konnectivity.example.com", "127.0.0.10": "elsewhere.example.com", "127.0.0.12": "ignition.example.com"} {
		if s, err := openFrom(source, port, name); err == nil {
			g.Expect(s.Close()).To(Succeed())
		}
	}
	s, err = openFrom("127.0.0.10", port, "x.apps.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Close()).To(Succeed())
	g.Eventually(stages("127.0.0.9"), 20*time.Second).Should(HaveKeyWithValue(v1alpha1.StageKonnectivityHello, HaveField("Result", v1alpha1.StageNoTarget)))
	g.Eventually(stages("127.0.0.10"), 20*time.Second).Should(HaveKeyWithValue(v1alpha1.StageUnmatchedHello, HaveField("ServerName", "elsewhere.example.com")))
	g.Eventually(func() []v1alpha1.UnmatchedName {
		server := &v1alpha1.ProxyServer{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(l.server), server)).To(Succeed())
		return server.Status.UnmatchedNames
	}, 20*time.Second).Should(ConsistOf(And(HaveField("Name", "elsewhere.example.com"), HaveField("Port", port), HaveField("LastTime.Time", BeTemporally("~", began, unmatchedStep)))))
	g.Expect(stages("127.0.0.9")()).To(HaveLen(2))
	g.Expect(stages("127.0.0.10")()).To(HaveLen(1), "what goes to *.apps is no stage")
	g.Expect(stages("127.0.0.11")()).To(BeEmpty(), "it has said nothing")
}

// What is no TLS at all has said no hello.
func TestNoiseIsNoHello(t *testing.T) {
	g := NewWithT(t)
	ignition, port := newTarget(t, "ignition"), freePort(t)
	l := prepareLab(t, route("ignition", port, ignition, "ignition.example.com"))
	l.server.Labels = map[string]string{names.LabelInfra: "c1"}
	c := cluster(l, leaseOf("127.0.0.9"))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	conn, err := from("127.0.0.9").Dial("tcp", at(port))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	_, err = conn.Read(make([]byte, 1))
	g.Expect(err).To(And(HaveOccurred(), Not(MatchError(os.ErrDeadlineExceeded))), "it is closed")
	s, err := openFrom("127.0.0.9", port, "ignition.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Close()).To(Succeed())
	lease := leaseOf("127.0.0.9")
	g.Eventually(func() map[v1alpha1.StageName]v1alpha1.Stage {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)).To(Succeed())
		return lease.Stages()
	}, 20*time.Second).Should(And(HaveLen(1), HaveKey(v1alpha1.StageIgnitionHello)))
}
