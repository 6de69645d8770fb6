package csr_test

import (
	"crypto/rand"
	"crypto/rsa"
	"slices"
	"strings"
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

// While Services are unknown, a bootstrap certificate, and a serving certificate without addresses, are still approved.
func TestServicesThatAreNotKnownStandInTheWayOfAddressesOnly(t *testing.T) {
	for kind, change := range map[csr.Kind]func(*draft){csr.Bootstrap: func(*draft) {}, csr.Serving: func(d *draft) { d.names = d.names[:1] }} {
		d := good(t, kind, 1)
		d.facts.ServicesUnknown = true
		change(d)
		decision := csr.Decide(d.request(), d.facts)
		NewWithT(t).Expect(decision.Approve).To(BeTrue(), "%v", refusals(decision))
	}
}

// A bootstrap token can ask as often as it likes, and verifying a signature is what costs.
func TestASignatureIsVerifiedLast(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for rule, change := range map[string]func(*draft){
		"Key":              func(d *draft) { d.key = weak },
		"DPUOfThisCluster": func(d *draft) { d.facts.DPUs = nil },
		"OSInstalled":      func(d *draft) { d.facts.DPUs[1].OSInstalled = false },
	} {
		d := good(t, csr.Bootstrap, 1)
		change(d)
		rules := csr.Decide(d.request(), d.facts).Rules
		NewWithT(t).Expect(rules).To(ContainElement(And(HaveField("Name", rule), HaveField("Passed", false))))
		NewWithT(t).Expect(rules).NotTo(ContainElement(HaveField("Name", "Signature")), rule)
	}
	passed := good(t, csr.Bootstrap, 1)
	rules := csr.Decide(passed.request(), passed.facts).Rules
	NewWithT(t).Expect(rules[len(rules)-1].Name).To(Equal("Signature"))
}

// A bootstrap token can leave thousands waiting, so costlier rules come last.
func TestNothingIsJudgedBeyondTheFirstRuleThatDoesNotPass(t *testing.T) {
	g, d := NewWithT(t), good(t, csr.Serving, 1)
	asked, _ := csr.Read(d.request())
	g.Expect(asked.Judge(d.facts).Broken()).To(BeEmpty())
	d.facts.DPUs = nil
	g.Expect(asked.Judge(d.facts).Rules).To(ConsistOf(HaveField("Name", "DPUOfThisCluster")))
	g.Expect(len(csr.Decide(d.request(), d.facts).Rules)).To(BeNumerically(">", 20), "who asks why hears all")
}

// An administrator of a hosted cluster may approve with a message as large as etcd takes.
func TestOfALargeApprovalNothingIsKept(t *testing.T) {
	g, d := NewWithT(t), good(t, csr.Bootstrap, 1)
	object := d.request()
	long := strings.Repeat("x", 1<<20)
	object.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateApproved, Reason: csr.ReasonBootstrap, Message: long + ", UID " + long}}
	_, approval, ok := csr.Approved(object)
	g.Expect(ok).To(BeTrue())
	g.Expect(approval.DPU).To(BeEmpty())
	object.Status.Conditions[0].Message = long + ", UID uid-1"
	_, approval, _ = csr.Approved(object)
	g.Expect(approval.DPU).To(BeEquivalentTo("uid-1"))
	object.Spec.Request = append(object.Spec.Request, long...)
	_, _, ok = csr.Approved(object)
	g.Expect(ok).To(BeFalse(), "it is not read")
	named := good(t, csr.Bootstrap, 1).request()
	named.Name, named.Status = long, object.Status
	_, _, ok = csr.Approved(named)
	g.Expect(ok).To(BeFalse())
	for what, r := range map[string]*certificates.CertificateSigningRequest{"metadata.name has 1048576 (at most 253)": named, "spec.request has 10": object} {
		_, rules := csr.Read(r)
		g.Expect(csr.Broken(rules)).To(Equal("NotTooLarge"))
		g.Expect(rules).To(ConsistOf(HaveField("Because", And(ContainSubstring(what), HaveSuffix("delete it")))))
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
	asked, _ := csr.Read(object)
	g.Expect(asked.Key).NotTo(BeZero())
	g.Expect(approval).To(Equal(csr.Approval{Name: object.Name, DPU: "uid-1", Key: asked.Key, Created: object.CreationTimestamp.Time, At: now}))
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
