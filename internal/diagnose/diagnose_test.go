package diagnose

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/step"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

const ignitionHost, konnectivityHost = "ignition.apps.example.com", "konnectivity.apps.example.com"

// joined are the facts of a worker that has joined: started half an hour ago, Ready after a minute.
func joined() Facts {
	ready := func(kinds ...string) (all []metav1.Condition) {
		for _, kind := range kinds {
			all = append(all, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Serving"})
		}
		return all
	}
	f := Facts{Now: noon, Infra: &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}}
	f.Infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	f.Infra.Spec.NetworkConfig.NetworkAttachmentNamespace, f.Infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "default", "vlan100"
	f.Infra.Status.Conditions = ready("Accepted", "NetworkReady", "EndpointsResolved", "DHCPReady", "DNSReady", "ProxyReady", "BackendsHealthy", "Ready")
	f.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{
		{Name: "api", Hostnames: []string{"203.0.113.10"}, Port: 6443}, {Name: "ignition", Hostnames: []string{ignitionHost}, Port: 443},
		{Name: "konnectivity", Hostnames: []string{konnectivityHost}, Port: 443},
	}
	f.HostedCluster.Is = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	f.HostedCluster.Is.Status.IgnitionEndpoint = ignitionHost
	f.NodePools.Is = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}}
	instances := []v1alpha1.Instance{{IP: "192.168.100.1", Ready: true}, {IP: "192.168.100.4", Ready: true}}
	f.DHCP.Is = &v1alpha1.DHCPServer{}
	f.DHCP.Is.Status.Instances, f.DHCP.Is.Status.Conditions = instances, ready("AddressesLeft", "AddressesLeft1")
	f.DNS.Is = &v1alpha1.DNSServer{}
	f.DNS.Is.Spec.StaticEntries = []v1alpha1.DNSEntry{{Hostname: ignitionHost}, {Hostname: "*.apps.example.com"}}
	f.Proxy.Is = &v1alpha1.ProxyServer{ObjectMeta: metav1.ObjectMeta{Name: "c1-proxy"}}
	f.Proxy.Is.Spec.NetworkConfig.ServerIP = "192.168.100.3"
	f.Proxy.Is.Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.3", Ready: true}}
	f.Proxy.Is.Spec.Backends = []v1alpha1.ProxyBackend{
		{Name: "api", Port: 6443, CatchAll: true, TargetNamespace: "clusters-c1", TargetService: "kube-apiserver"},
		{Name: "ignition", Port: 443, Hostname: ignitionHost, TargetNamespace: "clusters-c1", TargetService: "ignition-server-proxy"},
		{Name: "konnectivity", Port: 443, Hostname: konnectivityHost, TargetNamespace: "clusters-c1", TargetService: "konnectivity-server"},
	}
	f.Proxy.Is.Status.Backends = []v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}, {Name: "ignition", Healthy: 1, Total: 1}, {Name: "konnectivity", Healthy: 1, Total: 1}}
	f.Policies.Is = []string{"oooi.clusters.c1-proxy.kube-apiserver", "oooi.clusters.c1-proxy.ignition-server-proxy"}
	f.Tokens.Is = []metav1.ObjectMeta{{Name: "token-c1-91bf131f"}}
	f.Machines.Is = []Machine{{Name: "w1", Pool: "c1", Created: ago(40 * time.Minute), Started: ago(30 * time.Minute), Status: "Running", Runs: true, Cards: []Card{{"52:54:00:00:01:01", "default/vlan100"}}}}
	f.Leases.Is = []v1alpha1.DHCPLease{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-192.168.100.60", CreationTimestamp: metav1.NewTime(ago(30*time.Minute - 5*time.Second))},
		Spec: v1alpha1.DHCPLeaseSpec{IP: "192.168.100.60", MAC: "52:54:00:00:01:01", Hostname: "w1", VMRef: &v1alpha1.VMReference{Name: "w1"}, State: v1alpha1.LeaseBound,
			DurableUntilTime: metav1.NewMicroTime(noon.Add(time.Hour)), ExpirationTime: "2026-11-27T12:30:00Z"},
	}}
	f.Hosted.Is = Hosted{
		Nodes:    map[string]Node{"w1": {Created: ago(29 * time.Minute), Heartbeat: ago(5 * time.Second), Ready: corev1.NodeCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(29 * time.Minute))}}},
		Requests: []Request{{Asked: csr.Asked{Kind: csr.Bootstrap, Name: "csr-1", Host: "w1", Created: ago(29*time.Minute + 30*time.Second)}, Decided: certv1.CertificateApproved}},
		Tunnels:  map[string]string{"w1": ""},
	}
	return f
}

// absent takes away what the hosted cluster has of the worker.
func absent(f *Facts) { f.Hosted.Is = Hosted{} }

// unleased takes away the lease, and all that comes after it.
func unleased(f *Facts) {
	absent(f)
	f.Leases.Is = nil
}

func breaks(f *Facts, kind, reason string) {
	for i := range f.Infra.Status.Conditions {
		if c := &f.Infra.Status.Conditions[i]; c.Type == kind {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, "somebody broke it"
		}
	}
}

// An object that is there does not serve yet: its pods may never have started, or nobody may have looked at it.
func TestAServiceIsNotSaidToServeBeforeItsCondition(t *testing.T) {
	for name, kind := range map[string]string{"dhcp": v1alpha1.ConditionDHCPReady, "names": v1alpha1.ConditionDNSReady, "proxy": v1alpha1.ConditionProxyReady} {
		f := joined()
		judged := func() step.Step {
			all := Services(f)
			return all[slices.IndexFunc(all, func(s step.Step) bool { return s.Name == name })]
		}
		g := NewWithT(t)
		g.Expect(judged().Outcome).To(Equal(step.OK), name)
		c := meta.FindStatusCondition(f.Infra.Status.Conditions, kind)
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotReported", "it has not reported yet"
		g.Expect(judged()).To(And(HaveField("Outcome", step.Warn), HaveField("Says", kind+" is Unknown (NotReported): it has not reported yet")), name)
		f.Infra.Status.Conditions = nil
		g.Expect(judged()).To(And(HaveField("Outcome", step.Fail), HaveField("Says", HaveSuffix("the Infra has no condition "+kind)), HaveField("Do", ContainSubstring("oooi check"))), name)
	}
}

// A right is advised to whom it would help.
func TestOnlyAMissingRightIsAskedFor(t *testing.T) {
	for why, do := range map[string]string{
		"you may not get dhcpservers in namespace clusters":    "have an administrator grant you that right, or run this as somebody who has it",
		"the server is currently unable to handle the request": step.Again,
	} {
		f := joined()
		f.DHCP.Is, f.DHCP.Unread = nil, why
		NewWithT(t).Expect(dhcpServes(f)).To(And(HaveField("Outcome", step.Unread), HaveField("Do", do)), why)
	}
}

// broken has a way to each cause.
var brokenBy = map[string]func(*Facts){
	"booting":     func(f *Facts) { unleased(f); f.Machines.Is[0].Started = ago(10 * time.Second) },
	"not-running": func(f *Facts) { f.Machines.Is[0].Runs, f.Machines.Is[0].Status = false, "Stopped" },
	"duplicate-mac": func(f *Facts) {
		unleased(f)
		twin := f.Machines.Is[0]
		twin.Name = "w2"
		f.Machines.Is = append(f.Machines.Is, twin)
	},
	"other-network": func(f *Facts) { unleased(f); f.Machines.Is[0].Cards[0].Network = "default/vlan77" },
	"pod-network":   func(f *Facts) { unleased(f); f.Machines.Is[0].Cards[0].Network = "" },
	"infra-refused": func(f *Facts) { unleased(f); f.DHCP.Is = nil; breaks(f, "Accepted", "VLANInUse") },
	"dhcp-down":     func(f *Facts) { unleased(f); breaks(f, "DHCPReady", "PodNotReady") },
	"no-address": func(f *Facts) {
		unleased(f)
		breaks(f, "DHCPReady", "PoolExhausted")
		f.DHCP.Is.Status.Conditions[1].Status = metav1.ConditionFalse
	},
	"foreign-server": func(f *Facts) {
		unleased(f)
		f.Warnings.Is = []corev1.Event{{Reason: "ForeignServer", LastTimestamp: metav1.NewTime(ago(time.Minute))}}
	},
	"no-discover":    unleased,
	"address-in-use": func(f *Facts) { absent(f); f.Leases.Is[0].Spec.State = v1alpha1.LeaseDeclined },
	"lease-ended": func(f *Facts) {
		absent(f)
		f.Leases.Is[0].Spec.DurableUntilTime = metav1.NewMicroTime(ago(time.Minute))
	},
	"wrong-hostname": func(f *Facts) { absent(f); f.Leases.Is[0].Spec.Hostname = "other" },
	"dns-down":       func(f *Facts) { absent(f); breaks(f, "DNSReady", "PodNotReady") },
	"endpoint-moved": func(f *Facts) { absent(f); f.HostedCluster.Is.Status.IgnitionEndpoint = "moved.apps.example.com:443" },
	"name-missing":   func(f *Facts) { absent(f); f.DNS.Is.Spec.StaticEntries = f.DNS.Is.Spec.StaticEntries[:1] },
	"proxy-down":     func(f *Facts) { absent(f); breaks(f, "ProxyReady", "PodNotReady") },
	"no-route":       func(f *Facts) { absent(f); f.Proxy.Is.Spec.Backends[1].Hostname = "old.apps.example.com" },
	"network-policy": func(f *Facts) {
		absent(f)
		f.Proxy.Is.Status.Backends[1].Healthy = 0
		f.Policies.Is = f.Policies.Is[:1]
	},
	"backend-down": func(f *Facts) {
		absent(f)
		f.Proxy.Is.Status.Backends[1] = v1alpha1.BackendStatus{Name: "ignition"} // its policy goes with its last pod
		f.Policies.Is = f.Policies.Is[:1]
	},
	"no-handshake":                 faulty(1, v1alpha1.FaultNoHandshake),
	"certificate-not-yet-valid":    faulty(1, v1alpha1.FaultNotYetValid),
	"certificate-expired":          faulty(2, v1alpha1.FaultExpired),
	"certificate-for-another-name": faulty(0, v1alpha1.FaultAnotherName),
	"ignition-fails":               faulty(1, v1alpha1.FaultIgnition),
	"ignition-down":                func(f *Facts) { absent(f); f.Ignition.Is = []bool{false} },
	"no-token":                     func(f *Facts) { absent(f); f.Tokens.Is[0].Name = "token-c2-91bf131f" },
	"token-expired":                func(f *Facts) { absent(f); f.Machines.Is[0].Created = ago(12 * time.Hour) },
	"token-refused":                func(f *Facts) { absent(f); refuses(f, "Bad header") },
	"payload-invalid": func(f *Facts) {
		absent(f)
		f.NodePools.Is[0].Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolValidGeneratedPayloadConditionType, Reason: "InvalidConfig"}}
	},
	"no-csr": absent,
	"csr-for-another-name": func(f *Facts) {
		delete(f.Hosted.Is.Nodes, "w1")
		f.Hosted.Is.Requests[0].Host, f.Hosted.Is.Requests[0].Decided = "localhost", ""
	},
	"csr-pending": func(f *Facts) { delete(f.Hosted.Is.Nodes, "w1"); f.Hosted.Is.Requests[0].Decided = "" },
	"csr-denied": func(f *Facts) {
		delete(f.Hosted.Is.Nodes, "w1")
		f.Hosted.Is.Requests[0].Decided = certv1.CertificateDenied
	},
	"no-node": func(f *Facts) { delete(f.Hosted.Is.Nodes, "w1") },
	"kubelet-silent": func(f *Facts) {
		n := f.Hosted.Is.Nodes["w1"]
		n.Heartbeat, n.Ready.Status = ago(time.Minute), corev1.ConditionUnknown
		f.Hosted.Is.Nodes["w1"] = n
	},
	"node-not-ready": func(f *Facts) {
		n := f.Hosted.Is.Nodes["w1"]
		n.Ready.Status = corev1.ConditionFalse
		f.Hosted.Is.Nodes["w1"] = n
	},
	"no-tunnel": func(f *Facts) { f.Hosted.Is.Tunnels["w1"] = "it answers 500" },
}

// refuses has the ignition server answer a machine of w1's config, and w1 receive no config.
func refuses(f *Facts, message string) {
	f.Leases.Is[0].Status = v1alpha1.DHCPLeaseStatus{Client: "52:54:00:00:01:01", Stages: []v1alpha1.Stage{
		{Name: v1alpha1.StageIgnitionHello, FirstTime: metav1.NewMicroTime(ago(29 * time.Minute)), Result: v1alpha1.StageForwarded, ReceivedBytes: 2210}}}
	f.Refusals.Is = append(f.Refusals.Is, corev1.Event{InvolvedObject: corev1.ObjectReference{Name: "token-c1-91bf131f"}, Message: message, LastTimestamp: metav1.NewTime(ago(20 * time.Minute))})
}

// faulty has a probe find something wrong with a backend.
func faulty(backend int, reason v1alpha1.FaultReason) func(*Facts) {
	return func(f *Facts) {
		absent(f)
		f.Proxy.Is.Status.Backends[backend].Fault = &v1alpha1.BackendFault{Reason: reason, Message: "as the probe says"}
	}
}

// A probe adds to what else is known, and takes nothing from it.
func TestAFaultIsToldAfterWhatExplainsIt(t *testing.T) {
	g, f := NewWithT(t), joined()
	faulty(1, v1alpha1.FaultIgnition)(&f)
	f.Ignition.Is = []bool{false}
	g.Expect(at(f, "ignition").See).To(Equal(Page+ignitionDown), "its front answers 503 then")
	f = joined()
	faulty(1, v1alpha1.FaultIgnition)(&f)
	f.Proxy.Is.Status.Instances[0].Ready = false
	g.Expect(at(f, "ignition").See).To(BeEmpty(), "who says so is away")
	f = joined()
	faulty(1, v1alpha1.FaultExpired)(&f)
	f.Proxy.Is.Status.Backends[0].Healthy = 0
	g.Expect(at(f, "backends").See).To(Equal(Page + backendDown))
	f = joined()
	faulty(0, v1alpha1.FaultExpired)(&f)
	f.Hosted = step.Read[Hosted]{Unread: "certificate has expired"}
	g.Expect(at(f, "backends")).To(And(HaveField("See", Page+expired), HaveField("Outcome", step.Fail), HaveField("Says", HaveSuffix(": as the probe says"))), "the hosted API is not read for the same reason")
	f = joined()
	f.Proxy.Is.Status.Backends = append(f.Proxy.Is.Status.Backends, v1alpha1.BackendStatus{Name: "oauth", Healthy: 1, Total: 1, Fault: &v1alpha1.BackendFault{Reason: v1alpha1.FaultExpired}})
	steps, _ := Worker(f, "w1")
	g.Expect(step.Worst(steps)).To(Equal(step.OK), "no worker needs oauth")
}

// A kubelet dials the API by the name in its kubeconfig.
func TestAnAPIThatMovedIsFound(t *testing.T) {
	g, f := NewWithT(t), joined()
	absent(&f)
	f.HostedCluster.Is.Status.ControlPlaneEndpoint.Host = "203.0.113.11"
	steps, _ := Worker(f, "w1")
	g.Expect(steps[len(steps)-1]).To(And(HaveField("See", Page+endpointMoved), HaveField("Says", ContainSubstring("203.0.113.11 for api"))))
}

func TestEachCauseIsNamed(t *testing.T) {
	NewWithT(t).Expect(slices.Sorted(maps.Keys(brokenBy))).To(Equal(slices.Sorted(slices.Values(Causes))), "each cause has a way to it")
	for cause, breaks := range brokenBy {
		t.Run(cause, func(t *testing.T) {
			g, f := NewWithT(t), joined()
			breaks(&f)
			steps, found := Worker(f, "w1")
			g.Expect(found).To(BeTrue())
			last := steps[len(steps)-1]
			g.Expect(last.See).To(Equal(Page+cause), "%+v", steps)
			g.Expect(last.Do).NotTo(BeEmpty(), "it says what mends it")
			g.Expect(step.Worst(steps[:len(steps)-1])).To(Or(Equal(step.OK), Equal(step.Skip)), "the walk ends at the first break")
			want := step.Fail
			if cause == booting {
				want = step.Warn
			}
			g.Expect(last.Outcome).To(Equal(want))
			g.Expect(Infra(f)).NotTo(ContainElement(HaveField("Says", HavePrefix("w1 has joined"))))
		})
	}
}

func TestNothingIsFoundOfAWorkerThatHasJoined(t *testing.T) {
	g := NewWithT(t)
	steps, _ := Worker(joined(), "w1")
	g.Expect(step.Worst(steps)).To(Equal(step.OK), "%+v", steps)
	g.Expect(steps).To(HaveLen(len(stages)))
	g.Expect(steps[3].Says).To(Equal("it has 192.168.100.60, first leased at 2026-11-27T11:30:05Z (+5s), until 2026-11-27T12:30:00Z"))
	renewed := joined() // renewals below the horizon write nothing
	renewed.Leases.Is[0].Spec.ExpirationTime = "2026-11-27T11:59:59Z"
	steps, _ = Worker(renewed, "w1")
	g.Expect(steps[3].Says).To(HaveSuffix("until 2026-11-27T13:00:00Z"))
	all := Infra(joined())
	g.Expect(all).To(HaveLen(len(services)+1), "a worker that has joined has one line")
	g.Expect(all[len(all)-1].Says).To(HavePrefix("w1 has joined: "))
}

// What DNS and the proxy saw is told where it belongs, and together where the worker stopped; what is of an earlier start is not.
func TestWhatTheDaemonsSawIsEvidence(t *testing.T) {
	g, f := NewWithT(t), joined()
	seen := func(name v1alpha1.StageName, after time.Duration, server string, result v1alpha1.StageResult, bytes int64) v1alpha1.Stage {
		return v1alpha1.Stage{Name: name, FirstTime: metav1.NewMicroTime(ago(30*time.Minute - after)), ServerName: server, Result: result, ReceivedBytes: bytes}
	}
	f.Leases.Is[0].Status = v1alpha1.DHCPLeaseStatus{Client: "52:54:00:00:01:01", Stages: []v1alpha1.Stage{
		seen(v1alpha1.StageNameAsked, 6*time.Second, ignitionHost, "", 0),
		seen(v1alpha1.StageIgnitionHello, 7*time.Second, ignitionHost, v1alpha1.StageForwarded, 70000),
		seen(v1alpha1.StageAPIHello, 20*time.Second, "", v1alpha1.StageForwarded, 3112),
		seen(v1alpha1.StageKonnectivityHello, -time.Minute, konnectivityHost, v1alpha1.StageForwarded, 0),
		seen(v1alpha1.StageUnmatchedHello, 30*time.Second, "registry.example.com", "", 0),
	}}
	g.Expect(at(f, "names").Says).To(HaveSuffix("; it asked for ignition.apps.example.com at 2026-11-27T11:30:06Z (+6s)"))
	g.Expect(at(f, "ignition").Says).To(HaveSuffix("; it connected to Ignition at 2026-11-27T11:30:07Z (+7s), and received 70000 bytes"))
	const api = "it connected to the API at 2026-11-27T11:30:20Z (+20s), and received 3112 bytes: a TLS handshake or a refusal, and no more"
	g.Expect(at(f, "backends").Says).To(HaveSuffix("; "+api), "konnectivity is of an earlier start")
	g.Expect(at(f, "proxy").Says).To(ContainSubstring("; it sent the proxy registry.example.com at 2026-11-27T11:30:30Z (+30s), for which it has no backend. "))
	absent(&f)
	g.Expect(at(f, "certificate").Says).To(And(HavePrefix("no kubelet has asked for a certificate as w1"), ContainSubstring("received 70000 bytes, connected to the API"), ContainSubstring("registry.example.com")))
	f.Leases.Is[0].Status.Client = "52:54:00:00:09:09"
	g.Expect(at(f, "names").Says).NotTo(ContainSubstring("it asked"), "they are another's")
}

// What breaks after a worker has passed it does not stop this worker, and is told.
func TestWhatIsBrokenBehindAWorkerIsAWarning(t *testing.T) {
	for _, cause := range []string{"dhcp-down", "dns-down", "proxy-down", "backend-down", "endpoint-moved", "no-token", "wrong-hostname"} {
		t.Run(cause, func(t *testing.T) {
			g, f, healthy := NewWithT(t), joined(), joined()
			brokenBy[cause](&f)
			f.Hosted, f.Leases.Is = healthy.Hosted, append(f.Leases.Is[:0:0], healthy.Leases.Is...)
			if cause == "wrong-hostname" {
				f.Leases.Is[0].Spec.Hostname = "other"
			}
			steps, _ := Worker(f, "w1")
			i := slices.IndexFunc(steps, func(s step.Step) bool { return s.See == Page+cause })
			g.Expect(i).To(BeNumerically(">=", 0))
			g.Expect(steps[i].Outcome).To(Equal(step.Warn))
			g.Expect(steps).To(HaveLen(len(stages)), "the walk goes on")
			ofInfra := Infra(f)
			if _, shared := services[steps[i].Name]; shared {
				g.Expect(ofInfra).To(HaveLen(len(services)+1), "of the Infra it is told once, and not of each worker that has joined")
				g.Expect(ofInfra[len(ofInfra)-1].Says).To(HavePrefix("w1 has joined: "))
			} else {
				g.Expect(ofInfra).To(HaveLen(len(services) + len(stages)))
			}
		})
	}
}

// A worker that was Ready and is not is stopped by what it needs all the time.
func TestALostWorkerIsStoppedByTheProxy(t *testing.T) {
	g, f := NewWithT(t), joined()
	brokenBy["kubelet-silent"](&f)
	breaks(&f, "ProxyReady", "PodNotReady")
	steps, _ := Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).To(Equal(Page + "proxy-down"))
}

func TestWhatCannotBeReadIsSaidAndTheWalkGoesOn(t *testing.T) {
	g := NewWithT(t)
	f := Facts{Now: noon, Infra: joined().Infra, Machines: joined().Machines}
	const why = "you may not list them"
	f.HostedCluster.Unread, f.NodePools.Unread, f.DHCP.Unread, f.DNS.Unread, f.Proxy.Unread = why, why, why, why, why
	f.Leases.Unread, f.Tokens.Unread, f.Policies.Unread, f.Hosted.Unread = why, why, why, why
	steps, _ := Worker(f, "w1")
	g.Expect(steps).To(HaveLen(len(stages)))
	g.Expect(step.Worst(steps)).To(Equal(step.Unread), "what is not known is not broken: %+v", steps)
	var unread int
	for _, s := range steps {
		if s.Outcome == step.Unread {
			unread++
			g.Expect(s.Says).To(HaveSuffix(why))
			g.Expect(s.See).To(Equal(Page + rights))
		}
	}
	g.Expect(unread).To(Equal(8))
	f.Machines = step.Read[[]Machine]{Unread: why}
	g.Expect(Infra(f)).To(ContainElement(HaveField("Says", "virtual machines not read: "+why)))
}

func TestAPoolOfReservationsHasNoAddressForAnother(t *testing.T) {
	g, f := NewWithT(t), joined()
	unleased(&f)
	f.DHCP.Is.Status.PoolSize = 1
	f.DHCP.Is.Spec.Reservations = []v1alpha1.Reservation{{IP: "192.168.100.60", MAC: "52:54:00:00:09:09"}}
	steps, _ := Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).To(Equal(Page + noAddress))
	f.DHCP.Is.Spec.Reservations[0].MAC = "52:54:00:00:01:01"
	steps, _ = Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).To(Equal(Page + noDiscover))
}

// An admin who has just widened the pool is not told that it is full: DHCP has not served the change yet.
func TestAFullPoolIsOfTheConfigurationThatIsServed(t *testing.T) {
	g, f := NewWithT(t), joined()
	brokenBy["no-address"](&f)
	f.DHCP.Is.Generation = 2
	steps, _ := Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).NotTo(Equal(Page + noAddress))
	second := f.DHCP.Is.Status.Conditions[1]
	second.Type, second.ObservedGeneration = v1alpha1.InstanceCondition(v1alpha1.ConditionAddressesLeft, 1), 2
	f.DHCP.Is.Status.Instances = make([]v1alpha1.Instance, 2)
	f.DHCP.Is.Status.Conditions = append(f.DHCP.Is.Status.Conditions, second)
	steps, _ = Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).To(Equal(Page+noAddress), "the second instance says so now, whatever the first said before")
	f.DHCP.Is.Status.Conditions = f.DHCP.Is.Status.Conditions[:len(f.DHCP.Is.Status.Conditions)-1]
	f.DHCP.Is.Status.Conditions[1].ObservedGeneration = 2
	steps, _ = Worker(f, "w1")
	g.Expect(steps[len(steps)-1].See).To(Equal(Page + noAddress))
}

// A machine that starts again has the lease of its earlier start until it asks.
func TestAReleasedLeaseIsOfAnEarlierStart(t *testing.T) {
	g, f := NewWithT(t), joined()
	absent(&f)
	f.Leases.Is[0].Spec.State = v1alpha1.LeaseReleased
	f.Machines.Is[0].Started = ago(10 * time.Second)
	steps, _ := Worker(f, "w1")
	g.Expect(steps[len(steps)-1]).To(And(HaveField("Name", "lease"), HaveField("See", Page+booting)))
}

// A DPU is no machine of KubeVirt; its lease stands for it.
func TestALeaseStandsForAMachineThatKubeVirtDoesNotKnow(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.Machines.Is = nil
	f.Leases.Is[0].Spec.VMRef = nil
	steps, found := Worker(f, "w1")
	g.Expect(found).To(BeTrue())
	g.Expect(step.Worst(steps)).To(Equal(step.OK))
	g.Expect(Infra(f)).To(HaveLen(len(services) + 1))
	absent(&f)
	g.Expect(Infra(f)).To(HaveLen(len(services)), "a lease alone makes no worker")
	_, found = Worker(f, "w2")
	g.Expect(found).To(BeFalse())
}

func TestDisabledComponentsAreSkipped(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.DHCP.Is, f.DNS.Is, f.Proxy.Is, f.Leases.Is = nil, nil, nil, nil
	c := &f.Infra.Spec.InfraComponents
	c.DHCP.Enabled, c.DNS.Enabled, c.Proxy.Enabled = ptr.To(false), ptr.To(false), ptr.To(false)
	steps, _ := Worker(f, "w1")
	g.Expect(step.Worst(steps)).To(Equal(step.OK), "%+v", steps)
}

// A worker joins without names of others: its images are what it does not get.
func TestSilentResolversStopNobodyAndAreTold(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.DNS.Is.Status.Instances = f.DHCP.Is.Status.Instances
	f.DNS.Is.Status.Conditions = []metav1.Condition{
		{Type: "ResolversAnswer", Status: metav1.ConditionTrue}, {Type: "ResolversAnswer1", Status: metav1.ConditionFalse, Reason: "ResolversSilent", Message: "no resolver answers: 10.0.0.53"},
	}
	steps, _ := Worker(f, "w1")
	g.Expect(step.Worst(steps)).To(Equal(step.Warn))
	g.Expect(steps).To(HaveLen(len(stages)), "the walk goes on")
	g.Expect(at(f, "names")).To(And(HaveField("Says", HaveSuffix("; but no resolver answers: 10.0.0.53")), HaveField("See", "docs/reference/findings.md#ResolversSilent")))
	g.Expect(Infra(f)).To(ContainElement(And(HaveField("Name", "names"), HaveField("Outcome", step.Warn))))
}

// Each cause is explained on the page, under its anchor, and the page has no other.
func TestThePageExplainsEachCause(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../" + strings.TrimSuffix(Page, "#"))
	g.Expect(err).NotTo(HaveOccurred())
	var anchors []string
	for line := range strings.Lines(string(text)) {
		if _, rest, is := strings.Cut(line, `| <a id="`); is {
			anchor, _, _ := strings.Cut(rest, `"`)
			anchors = append(anchors, anchor)
		}
	}
	g.Expect(anchors).To(Equal(Causes), "in the order of the boot")
	g.Expect(string(text)).To(ContainSubstring(`<a id="` + rights + `">`))
}
