package status

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

func appsInfra() *v1alpha1.Infra {
	infra := &v1alpha1.Infra{}
	infra.Spec.AppsIngress = &v1alpha1.AppsIngress{Enabled: true}
	return infra
}

// appsAfter is the Infra's next status, after the one that it has.
func appsAfter(infra *v1alpha1.Infra, p apps.Apps, now time.Time, findings ...finding.Finding) v1alpha1.InfraStatus {
	s := Infra(infra, plan.InfraPlan{Apps: &p}, allServe(), Outcome{Findings: findings}, now)
	infra.Status = s
	return s
}

var (
	noted   = finding.Warn(v1alpha1.ConditionAppsIngressReady, "ExternalIPNotUsed").Say("one of two")
	waits   = finding.Wait(v1alpha1.ConditionAppsIngressReady, "WaitingForExternalIP").Say("waiting")
	lost    = finding.Fail(v1alpha1.ConditionAppsIngressReady, "ExternalIPLost").Say("lost")
	away    = finding.Fail(v1alpha1.ConditionAppsIngressReady, "HostedClusterUnreachable").Say("away")
	serves  = apps.Apps{Addresses: []netip.Addr{netip.MustParseAddr("192.168.100.200"), netip.MustParseAddr("fd00::200")}}
	nothing = apps.Apps{}
)

func TestAppsArePendingAtFirstAndDegradedAfterTwoMinutes(t *testing.T) {
	g := NewWithT(t)
	infra := appsInfra()
	g.Expect(appsAfter(infra, nothing, morning, waits).AppsIngress.Phase).To(Equal(v1alpha1.AppsPending))
	g.Expect(PatienceEnds(infra.Status, morning.Add(30*time.Second))).To(Equal(90*time.Second), "nothing else brings the Infra back")
	g.Expect(appsAfter(infra, nothing, morning.Add(119*time.Second), waits).AppsIngress.Phase).To(Equal(v1alpha1.AppsPending))
	g.Expect(appsAfter(infra, nothing, morning.Add(2*time.Minute), waits).AppsIngress.Phase).To(Equal(v1alpha1.AppsDegraded))
	g.Expect(PatienceEnds(infra.Status, morning.Add(2*time.Minute))).To(BeZero())
}

func TestAppsAreDegradedAtOnceWhen(t *testing.T) {
	for name, c := range map[string]struct {
		apps apps.Apps
		said finding.Finding
	}{
		"the address is lost":                     {serves, lost},
		"the hosted cluster is away":              {apps.Apps{Away: true}, away},
		"it is away and had served before":        {apps.Apps{Away: true, Addresses: serves.Addresses}, away},
		"the address that it had is being waited": {serves, waits},
	} {
		t.Run(name, func(t *testing.T) {
			s := appsAfter(appsInfra(), c.apps, morning, c.said)
			NewWithT(t).Expect(s.AppsIngress.Phase).To(Equal(v1alpha1.AppsDegraded))
		})
	}
}

func TestAppsStatusSaysWhereTheyLeadAndSinceWhen(t *testing.T) {
	g := NewWithT(t)
	infra := appsInfra()
	s := appsAfter(infra, serves, morning)
	at := metav1.NewTime(morning)
	want := &v1alpha1.AppsIngressStatus{
		Phase: v1alpha1.AppsReady, ExternalIP: "192.168.100.200", ExternalIPs: []v1alpha1.IPAddress{"192.168.100.200", "fd00::200"}, LastSyncTime: &at,
		Reason: "Serving", Message: "*.apps leads to [192.168.100.200 fd00::200]",
	}
	g.Expect(s.AppsIngress).To(Equal(want))
	g.Expect(appsAfter(infra, serves, noon).AppsIngress).To(Equal(want), "lastSyncTime is when this last changed")
	s = appsAfter(infra, serves, noon, lost)
	g.Expect(s.AppsIngress.LastSyncTime.Time).To(Equal(noon))
	g.Expect(s.AppsIngress.ExternalIP).To(BeEquivalentTo("192.168.100.200"), "what was good stays")
	long := finding.Fail(v1alpha1.ConditionAppsIngressReady, "ServiceRefused").Say("%s", strings.Repeat("x", 5000))
	g.Expect(appsAfter(infra, serves, noon, long).AppsIngress.Message).To(HaveLen(valid.LongestAppsMessage), "the field holds no more")
}

func TestReadyDoesNotDependOnApps(t *testing.T) {
	g := NewWithT(t)
	infra := appsInfra()
	appsAfter(infra, serves, morning)
	s := appsAfter(infra, serves, noon, lost)
	g.Expect(meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "workers join without")
	g.Expect(meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionAppsIngressReady)).To(BeTrue())
	g.Expect(meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDegraded)).To(BeTrue(), "something that worked does not")
}

func TestAppsHaveAConditionOnlyWhileEnabledAndABlockUntilTheGuestIsLeft(t *testing.T) {
	g := NewWithT(t)
	infra := appsInfra()
	appsAfter(infra, serves, morning)
	infra.Spec.AppsIngress.Enabled = false
	s := Infra(infra, plan.InfraPlan{}, allServe(), Outcome{}, noon)
	g.Expect(meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAppsIngressReady)).To(BeNil())
	g.Expect(s.AppsIngress.Reason).To(Equal("Removing"), "after a restart it is how we know that something of ours is in the hosted cluster")
	infra.Status = s
	s = Infra(infra, plan.InfraPlan{}, allServe(), Outcome{GuestLeft: true}, noon)
	g.Expect(s.AppsIngress).To(BeNil())
}

func TestAppsAreServedByDNSAndProxy(t *testing.T) {
	for name, c := range map[string]struct {
		unready func(input.Children)
		reason  string
		phase   v1alpha1.AppsIngressPhase
	}{
		"the proxy's pod is not ready": {func(c input.Children) {
			c.Proxy().Status.Conditions[0].Status, c.Proxy().Status.Conditions[0].Reason = metav1.ConditionFalse, "PodNotReady"
		}, "PodNotReady", v1alpha1.AppsDegraded},
		"DNS has yet to be told": {func(c input.Children) { c.DNS().Generation++ }, "Progressing", v1alpha1.AppsReady},
		"DHCP is not ready":      {func(c input.Children) { c.DHCP().Status.Conditions[0].Status = metav1.ConditionFalse }, "Serving", v1alpha1.AppsReady},
	} {
		for note, said := range map[string][]finding.Finding{"": nil, ", with a note": {noted}} {
			t.Run(name+note, func(t *testing.T) {
				g, infra, children := NewWithT(t), appsInfra(), allServe()
				appsAfter(infra, serves, morning)
				c.unready(children)
				s := Infra(infra, plan.InfraPlan{Apps: &serves}, children, Outcome{Findings: said}, noon)
				reason := c.reason
				if reason == "Serving" && said != nil {
					reason = said[0].Reason
				}
				g.Expect(s.AppsIngress.Reason).To(Equal(reason))
				g.Expect(s.AppsIngress.Phase).To(Equal(c.phase))
			})
		}
	}
}

func TestAppsStayAsTheyAreUntilTheHostedClusterIsLookedInto(t *testing.T) {
	for name, said := range map[string][]finding.Finding{"serving": nil, "serving in part": {noted}, "lost": {lost}, "waited for": {waits}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			infra := appsInfra()
			appsAfter(infra, serves, morning)
			before := appsAfter(infra, serves, morning, said...)
			restarted := serves
			restarted.Unread = true
			g.Expect(appsAfter(infra, restarted, noon).AppsIngress).To(Equal(before.AppsIngress), "a restart of the manager changes nothing")
			g.Expect(infra.Status.Conditions).To(Equal(before.Conditions))
		})
	}
}

func TestAppsStayAsTheyAreWhileAnInfraIsFrozen(t *testing.T) {
	g := NewWithT(t)
	infra := appsInfra()
	stuck := Outcome{Frozen: true, Findings: []finding.Finding{finding.Refuse(v1alpha1.ConditionAccepted, "InvalidCIDR").Say("no")}}
	s := Infra(infra, plan.InfraPlan{Frozen: true}, allServe(), stuck, morning)
	g.Expect(s.AppsIngress.Phase).To(Equal(v1alpha1.AppsPending), "nothing was made yet")
	before := appsAfter(infra, serves, morning).AppsIngress
	s = Infra(infra, plan.InfraPlan{Frozen: true}, allServe(), stuck, noon)
	g.Expect(s.AppsIngress).To(Equal(before))
	g.Expect(meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAppsIngressReady)).To(BeTrue())
}
