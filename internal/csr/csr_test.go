package csr_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificates "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
)

func TestWhatStandsInTheWayGoesByItself(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*draft)
		again  time.Duration
	}{
		"a Lease grows old":           {node(csr.Node{}, time.Minute), 4 * time.Minute},
		"fifteen minutes pass":        {approved(itsOwn, time.Hour, 5*time.Minute), 10 * time.Minute},
		"a Ready Node stays":          {node(csr.Node{Ready: true}, time.Minute), 0},
		"a DPU that is not installed": {dpu(func(d *csr.DPU) { d.OSInstalled = false }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, d := NewWithT(t), good(t, csr.Bootstrap, 1)
			c.change(d)
			decision := csr.Decide(d.request(), d.facts)
			g.Expect(decision.Approve).To(BeFalse())
			if c.again == 0 {
				g.Expect(decision.Again).To(BeZero())
				return
			}
			g.Expect(decision.Again).To(Equal(now.Add(c.again)))
			d.facts.Now = decision.Again
			g.Expect(csr.Decide(d.request(), d.facts).Approve).To(BeTrue())
		})
	}
}

func TestWhatDoesNotStandInTheWay(t *testing.T) {
	for name, change := range map[string]func(*draft){
		"a Node whose Lease is old": node(csr.Node{}, 5*time.Minute),
		"a Node without a Lease":    node(csr.Node{}, -1),
		"an approval for the DPU before of the name": func(d *draft) {
			d.facts.Approved[d.host] = []csr.Approval{{Name: "another", DPU: "uid-before", Created: now, At: now}}
		},
		"an approval a quarter of an hour ago": approved(itsOwn, 20*time.Minute, 15*time.Minute),
		"a DPU made just before":               dpu(func(d *csr.DPU) { d.Created = now.Add(-7 * time.Second) }),
		"another of its name that is not installed": func(d *draft) {
			d.facts.DPUs = slices.Insert(d.facts.DPUs, 0, csr.DPU{Namespace: "another", Name: d.host, UID: "another", Cluster: cluster, Created: now})
		},
		"a subject in UTF-8": func(d *draft) { d.subject[0][0].tag, d.subject[1][0].tag = 12, 12 },
	} {
		t.Run(name, func(t *testing.T) {
			d := good(t, csr.Bootstrap, 1)
			change(d)
			decision := csr.Decide(d.request(), d.facts)
			NewWithT(t).Expect(decision.Approve).To(BeTrue(), "%v", refusals(decision))
		})
	}
}

func TestAServingCertificateNeedsNoAddress(t *testing.T) {
	d := good(t, csr.Serving, 1)
	d.names = d.names[:1]
	decision := csr.Decide(d.request(), d.facts)
	NewWithT(t).Expect(decision.Approve).To(BeTrue(), "%v", refusals(decision))
}

func TestAServingCertificateMayHaveAnAddressThatIsAnotherClustersDPUsToo(t *testing.T) {
	d := good(t, csr.Serving, 1)
	d.facts.DPUs[2].Addresses = addressesOf(1)
	decision := csr.Decide(d.request(), d.facts)
	NewWithT(t).Expect(decision.Approve).To(BeTrue(), "%v", refusals(decision))
}

func TestAnApprovalSaysForWhichDPUItIs(t *testing.T) {
	g, d := NewWithT(t), good(t, csr.Bootstrap, 1)
	object := d.request()
	bridge := types.NamespacedName{Namespace: "clusters", Name: "b1"}
	decision := csr.Decide(object, d.facts)
	condition := decision.Approval(bridge)
	g.Expect(condition.Message).To(HavePrefix("DPUHCPBridge clusters/b1: all "))
	condition.LastUpdateTime = metav1.NewTime(now)
	object.Status.Conditions = append(object.Status.Conditions, condition)
	host, approval, ok := csr.Approved(object)
	g.Expect(ok).To(BeTrue())
	g.Expect(host).To(Equal(d.host))
	g.Expect(approval).To(Equal(csr.Approval{Name: object.Name, DPU: "uid-1", Created: object.CreationTimestamp.Time, At: now}))
}

func TestAnothersApprovalIsForNoDPUThatItNames(t *testing.T) {
	g, d := NewWithT(t), good(t, csr.Bootstrap, 1)
	object := d.request()
	object.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateApproved, Reason: "KubectlApprove", Message: "for the one before, UID uid-0"}}
	_, approval, ok := csr.Approved(object)
	g.Expect(ok).To(BeTrue())
	g.Expect(approval.DPU).To(BeEmpty())
	object.Spec.Username = "system:node:" + d.host
	_, _, ok = csr.Approved(object)
	g.Expect(ok).To(BeFalse(), "a Node's renewal is no bootstrap")
}
