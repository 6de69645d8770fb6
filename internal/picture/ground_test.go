package picture_test

import (
	"fmt"
	"strings"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/diagnose"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// empty is an Infra that was just written.
func empty() diagnose.Facts {
	f := diagnose.Facts{Now: noon, Infra: &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}}
	f.Infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	n := &f.Infra.Spec.NetworkConfig
	n.CIDR, n.NetworkAttachmentNamespace, n.NetworkAttachmentDefinition = "192.168.100.0/24", "default", "vlan100"
	return f
}

// healthy has workers that have joined.
func healthy(workers int) diagnose.Facts {
	f := empty()
	for _, kind := range []string{"Accepted", "NetworkReady", "EndpointsResolved", "DHCPReady", "DNSReady", "ProxyReady", "BackendsHealthy", "Ready"} {
		f.Infra.Status.Conditions = append(f.Infra.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Serving", Message: "A worker that boots now can join."})
	}
	f.HostedCluster.Is = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	f.NodePools.Is = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}}
	f.DHCP.Is, f.DNS.Is, f.Proxy.Is = &v1alpha1.DHCPServer{}, &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{ObjectMeta: metav1.ObjectMeta{Name: "c1-proxy"}}
	end := v1alpha1.IPv4Address("192.168.100.254")
	if workers > 100 {
		end = "192.168.103.254"
	}
	f.DHCP.Is.Spec.LeaseConfig = v1alpha1.DHCPLeaseConfig{RangeStart: "192.168.100.10", RangeEnd: end, LeaseTime: metav1.Duration{Duration: 24 * time.Hour}}
	f.DHCP.Is.Spec.ExcludeRanges = []v1alpha1.AddressRange{{Start: "192.168.100.90", End: "192.168.100.99"}}
	f.DHCP.Is.Status = v1alpha1.DHCPServerStatus{PoolSize: 235, Instances: instances(1, 4)}
	f.DNS.Is.Status.Instances, f.Proxy.Is.Status.Instances = instances(2, 5), instances(3, 6)
	f.Proxy.Is.Spec.NetworkConfig.ServerIP = "192.168.100.3"
	for i, name := range []string{"api", "ignition", "konnectivity", "oauth"} {
		host := v1alpha1.DNSNameOrWildcard(name + ".apps.example.com")
		f.Infra.Status.Endpoints = append(f.Infra.Status.Endpoints, v1alpha1.EndpointStatus{Name: name, Hostnames: []string{string(host)}, Port: v1alpha1.Port(443 + i)})
		f.Proxy.Is.Spec.Backends = append(f.Proxy.Is.Spec.Backends, v1alpha1.ProxyBackend{Name: name, Port: v1alpha1.Port(443 + i), Hostname: host})
		f.Proxy.Is.Status.Backends = append(f.Proxy.Is.Status.Backends, v1alpha1.BackendStatus{Name: name, Healthy: 2, Total: 2})
	}
	f.DNS.Is.Spec.StaticEntries = []v1alpha1.DNSEntry{{Hostname: "*.apps.example.com"}}
	f.Tokens.Is = []metav1.ObjectMeta{{Name: "token-c1-91bf131f"}}
	f.Hosted.Is = diagnose.Hosted{Nodes: map[string]diagnose.Node{}, Tunnels: map[string]string{}}
	for i := range workers {
		joins(&f, fmt.Sprintf("c1-w%03d", i), i)
	}
	return f
}

func instances(hosts ...int) (all []v1alpha1.Instance) {
	for i, host := range hosts {
		all = append(all, v1alpha1.Instance{IP: v1alpha1.IPAddress(fmt.Sprintf("192.168.100.%d", host)), Node: fmt.Sprintf("node-%d", i+1), Ready: true})
	}
	return all
}

// boots adds a machine that runs, and leases adds its lease.
func boots(f *diagnose.Facts, name string, i int, started time.Time) {
	f.Machines.Is = append(f.Machines.Is, diagnose.Machine{Name: name, Pool: "c1", Created: started.Add(-time.Minute), Started: started, Status: "Running", Runs: true, Cards: []diagnose.Card{{MAC: mac(i), Network: "default/vlan100"}}})
}

func leases(f *diagnose.Facts, name string, i int, at time.Time) {
	ip := v1alpha1.IPv4Address(fmt.Sprintf("192.168.%d.%d", 100+(i+100)/200, (i+100)%200+1))
	f.Leases.Is = append(f.Leases.Is, v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-" + string(ip), CreationTimestamp: metav1.NewTime(at)},
		Spec: v1alpha1.DHCPLeaseSpec{IP: ip, MAC: v1alpha1.MACAddress(mac(i)), Hostname: name, VMRef: &v1alpha1.VMReference{Name: v1alpha1.ObjectName(name)}, State: v1alpha1.LeaseBound,
			DurableUntilTime: metav1.NewMicroTime(noon.Add(24 * time.Hour)), ExpirationTime: noon.Add(time.Duration(i%24+1) * time.Hour).Format(time.RFC3339)},
	})
}

func joins(f *diagnose.Facts, name string, i int) {
	boots(f, name, i, ago(30*time.Minute))
	leases(f, name, i, ago(30*time.Minute-5*time.Second))
	f.Hosted.Is.Nodes[name] = diagnose.Node{Created: ago(29 * time.Minute), Heartbeat: ago(5 * time.Second), Ready: corev1.NodeCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(29 * time.Minute))}}
	f.Hosted.Is.Requests = append(f.Hosted.Is.Requests, diagnose.Request{Asked: csr.Asked{Kind: csr.Bootstrap, Name: "csr-" + name, Host: name, Created: ago(29*time.Minute + 30*time.Second)}, Decided: certv1.CertificateApproved, At: ago(29*time.Minute + 18*time.Second)})
	f.Hosted.Is.Tunnels[name] = ""
}

func mac(i int) string { return fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256) }

// broken has a worker at each of several stages, and a service that is down.
func broken() diagnose.Facts {
	f := healthy(2)
	sees(&f.Leases.Is[0], v1alpha1.Stage{Name: v1alpha1.StageNameAsked}, v1alpha1.Stage{Name: v1alpha1.StageNodeReady})
	boots(&f, "c1-x-starts", 10, ago(12*time.Second))
	boots(&f, "c1-x-silent", 11, ago(10*time.Minute))
	boots(&f, "c1-x-ignites", 12, ago(time.Minute))
	leases(&f, "c1-x-ignites", 12, ago(50*time.Second))
	sees(&f.Leases.Is[2], v1alpha1.Stage{Name: v1alpha1.StageNameAsked}, v1alpha1.Stage{Name: v1alpha1.StageIgnitionHello, Result: v1alpha1.StageNoTarget}, v1alpha1.Stage{Name: v1alpha1.StageUnmatchedHello, ServerName: "registry.corp.example.com"})
	f.Hosted.Is.Requests = append(f.Hosted.Is.Requests,
		diagnose.Request{Asked: csr.Asked{Kind: csr.Bootstrap, Name: "csr-denied", Host: "c1-w001", Created: ago(40 * time.Minute)}, Decided: certv1.CertificateDenied, At: ago(39 * time.Minute), Because: "it is not of this cluster"},
		diagnose.Request{Asked: csr.Asked{Kind: csr.Serving, Name: "csr-waits", Host: "c1-w000", Created: ago(time.Minute)}}, diagnose.Request{})
	leases(&f, "c1-x-gone", 13, ago(time.Hour))
	f.Leases.Is[len(f.Leases.Is)-1].Spec.State = v1alpha1.LeaseDeclined
	f.Proxy.Is.Status.UnmatchedNames = []v1alpha1.UnmatchedName{
		{Name: "ntp.corp.example.com", Port: 4460, IP: "192.168.100.3", LastTime: metav1.NewTime(ago(90 * time.Minute))},
		{Name: "registry.corp.example.com", Port: 5000, IP: "192.168.100.3", LastTime: metav1.NewTime(ago(40 * time.Minute))},
		{Name: "registry.corp.example.com", Port: 5000, IP: "192.168.100.6", LastTime: metav1.NewTime(ago(20 * time.Minute))},
	}
	f.DNS.Is.Status.Instances[1].Ready, f.DNS.Is.Status.Instances[1].Message = false, "nobody answers at 192.168.100.5:53"
	f.Proxy.Is.Status.Backends[1] = v1alpha1.BackendStatus{Name: "ignition", Total: 1, Message: "10.0.0.7:443 refuses connections"}
	f.Policies.Unread = "you may not list networkpolicies.networking.k8s.io in namespace clusters-c1"
	f.Infra.Status.Conditions[7] = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "BackendsUnhealthy", Message: "No target of ignition answers; see which pods run: kubectl -n clusters-c1 get pods."}
	return f
}

// sees adds what daemons saw of a lease's holder.
func sees(l *v1alpha1.DHCPLease, all ...v1alpha1.Stage) {
	l.Status = v1alpha1.DHCPLeaseStatus{Client: l.Spec.Holder(), Stages: all}
}

// hostile has names that the API server would refuse, and texts that somebody else wrote, all of which would like to be more than text.
func hostile() diagnose.Facts {
	const bad = `</td></tr><script>alert(1)</script><img src="https://evil.example/x" onerror='alert(2)'>` + "\x1b[2J\x07\u202e"
	f := healthy(0)
	joins(&f, bad, 1)
	boots(&f, `"w" onclick=alert(3) x="`, 2, ago(12*time.Second))
	f.Infra.Status.Conditions[7].Message = bad
	f.Infra.Status.Endpoints[0].Hostnames = []string{bad}
	f.Proxy.Is.Status.Backends[0].Fault = &v1alpha1.BackendFault{Reason: v1alpha1.FaultAnotherName, Message: bad}
	f.Proxy.Is.Status.Backends[1].Message = bad
	f.DNS.Is.Status.Instances[0].Ready, f.DNS.Is.Status.Instances[0].Message = false, bad
	sees(&f.Leases.Is[0], v1alpha1.Stage{Name: v1alpha1.StageUnmatchedHello, ServerName: bad})
	f.Proxy.Is.Status.UnmatchedNames = []v1alpha1.UnmatchedName{{Name: bad, Port: 443, LastTime: metav1.NewTime(ago(time.Hour))}}
	f.Leases.Is[0].Spec.ExpirationTime = "9999-12-31T23:59:59Z"
	f.Hosted.Is.Requests = append(f.Hosted.Is.Requests, diagnose.Request{Asked: csr.Asked{Kind: csr.Bootstrap, Name: bad, Host: bad, Created: noon}, Decided: certv1.CertificateDenied, Because: bad + strings.Repeat("\u202e", 1000)})
	f.Hosted.Unread = bad
	return f
}
