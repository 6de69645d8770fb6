package workload

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

const baked = `{"cniVersion":"0.4.0","type":"bridge","bridge":"br100","ipam":{"type":"static","addresses":[{"address":"192.168.100.3/24"}]}}`

// two is a server with two instances, each on a network whose configuration has its address.
func two() Child[*v1alpha1.DNSServer] {
	in := aServer()
	in.NAD.Spec.Config = baked
	in.Server.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.4"}
	in.Server.Spec.NetworkConfig.MACAddress = "02:00:00:00:00:03"
	in.Further = []Instance{{NAD: in.NAD.DeepCopy()}}
	return in
}

func sets(objects []runtime.ApplyConfiguration) []*acapps.StatefulSetApplyConfiguration {
	return kindIn[*acapps.StatefulSetApplyConfiguration](objects)
}

// runs makes the pods of both serve the template that was planned last.
func runs(in *Child[*v1alpha1.DNSServer]) {
	for range 2 { // the second plan records that they served
		all := sets(DNS(*in).Objects)
		in.Running, in.Further[0].Running = all[0].Annotations, all[1].Annotations
		in.EachInstance(func(i *Instance) { i.Now.Serves, i.Now.Rolled = true, true })
	}
}

func image(s *acapps.StatefulSetApplyConfiguration) string {
	return *s.Spec.Template.Spec.Containers[0].Image
}

func TestTheFirstOfTwoInstancesIsAsOneAlone(t *testing.T) {
	g, in := NewWithT(t), two()
	both := sets(DNS(in).Objects)
	in.Server.Spec.NetworkConfig.AdditionalServerIPs, in.Further = nil, nil
	alone := sets(DNS(in).Objects)
	g.Expect(desired.Encoded(both[0])).To(Equal(desired.Encoded(alone[0])))
}

func TestTheSecondInstanceHasWhatIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	objects := DNS(two()).Objects
	all := sets(objects)
	g.Expect(all).To(HaveLen(2))
	g.Expect([]string{*all[0].Name, *all[1].Name}).To(Equal([]string{"c1-dns-deployment", "c1-dns-deployment-1"}))
	first, second := all[0].Spec.Template, all[1].Spec.Template
	g.Expect(first.Spec.Containers[0].Args).NotTo(ContainElement(HavePrefix("--instance")))
	g.Expect(second.Spec.Containers[0].Args).To(ContainElement("--instance=1"))
	g.Expect(second.Annotations[names.AnnotationNetworks]).To(Equal(`[{"name":"vlan100-1","namespace":"clusters","interface":"net1","mac":"`+names.MAC("clusters", "c1-dns", netip.MustParseAddr("192.168.100.4"))+`"}]`), "a network and a MAC of its own")
	g.Expect(all[1].Spec.Selector.MatchLabels).To(HaveKeyWithValue(names.LabelOrdinal, "1"))
	g.Expect(second.Labels).To(HaveKeyWithValue(names.LabelOrdinal, "1"))

	service := kindIn[*accore.ServiceApplyConfiguration](objects)
	g.Expect(service).To(HaveLen(1))
	for _, template := range []map[string]string{first.Labels, second.Labels} {
		for label, value := range service[0].Spec.Selector {
			g.Expect(template).To(HaveKeyWithValue(label, value), "both are behind one Service")
		}
	}
	apart := second.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	g.Expect(apart).To(HaveLen(1))
	g.Expect(*apart[0].PodAffinityTerm.TopologyKey).To(Equal(corev1.LabelHostname))
	for label, value := range apart[0].PodAffinityTerm.LabelSelector.MatchLabels {
		g.Expect(first.Labels).To(HaveKeyWithValue(label, value), "away from the other")
	}
}

func TestOneNetworkThatBakesNoAddressServesBoth(t *testing.T) {
	g, in := NewWithT(t), two()
	in.NAD.Spec.Config = `{"cniVersion":"0.4.0","type":"bridge","bridge":"br100","capabilities":{"ips":true},"ipam":{"type":"static"}}`
	in.Further[0].NAD = in.NAD
	g.Expect(sets(DNS(in).Objects)[1].Spec.Template.Annotations[names.AnnotationNetworks]).To(And(ContainSubstring(`"name":"vlan100"`), ContainSubstring(`"ips":["192.168.100.4/24"]`)))
}

// An instance that runs is not removed when its network is missing.
func TestNothingChangesWhileANetworkIsAway(t *testing.T) {
	in := two()
	runs(&in)
	in.Further[0].NAD = nil
	p := DNS(in)
	NewWithT(t).Expect(p.Frozen).To(BeTrue())
	NewWithT(t).Expect(p.Findings).To(ContainElement(HaveField("Message", ContainSubstring("clusters/vlan100-1 not found"))))
}

// One that does not run yet holds nothing up.
func TestWithoutASecondNetworkTheFirstInstanceIsAsOneAlone(t *testing.T) {
	g, in := NewWithT(t), two()
	in.Further[0].NAD = nil
	p := DNS(in)
	g.Expect(p.Findings).To(ContainElement(And(HaveField("Condition", "Ready1"), HaveField("Reason", "NADNotFound"),
		HaveField("Message", "NetworkAttachmentDefinition clusters/vlan100-1 not found; create it, or have one instance only: omit networkConfig.additionalServerIPs, or set an Infra's dns.replicas: 1"))))
	in.Server.Spec.NetworkConfig.AdditionalServerIPs, in.Further = nil, nil
	g.Expect(desired.Encoded(p.Objects)).To(Equal(desired.Encoded(DNS(in).Objects)))
}

// Each network needs its own grant: the first instance's does not cover the second's.
func TestTheNetworkOfEachInstanceIsGrantedByItself(t *testing.T) {
	g, in := NewWithT(t), two()
	in.Server.Spec.NetworkConfig.NetworkAttachmentNamespace = "elsewhere"
	in.Settings.NADSourceNamespaces = nil
	grant := map[string]string{names.AnnotationAllowedNamespaces: in.Server.Namespace}
	in.NAD.Annotations, in.Further[0].NAD.Annotations = grant, nil
	p := DNS(in)
	g.Expect(p.Frozen).To(BeTrue())
	g.Expect(p.Objects).To(BeEmpty())
	g.Expect(p.Findings).To(ConsistOf(And(HaveField("Reason", "RefNotPermitted"), HaveField("Message", ContainSubstring("vlan100-1")))))
	in.Further[0].NAD.Annotations = grant
	g.Expect(sets(DNS(in).Objects)).To(HaveLen(2))
}

// A DHCP daemon of an older release never learns of a second one, which would serve nobody beside it.
func TestASecondDHCPInstanceIsStartedOnceTheFirstKnowsOfIt(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.DHCPServer{}
	server.Namespace, server.Name = "clusters", "c1-dhcp"
	server.Spec.NetworkConfig = v1alpha1.DHCPNetworkConfig{
		Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan100"}, ServerIP: "192.168.100.2", CIDR: "192.168.100.0/24", AdditionalServerIPs: []v1alpha1.IPv4Address{"192.168.100.3"},
	}
	in := Child[*v1alpha1.DHCPServer]{server, two().Surroundings}
	both := sets(DHCP(in).Objects)
	g.Expect(both).To(HaveLen(2), "two that are new start together")
	postponed := And(HaveField("Condition", "Ready1"), HaveField("Reason", "SecondInstanceWaits"),
		HaveField("Message", HaveSuffix("update it: kubectl -n clusters annotate statefulset,deployment -l app.kubernetes.io/instance=c1-dhcp,app=dhcp hostedcluster.densityops.com/released-")))

	in.Running = both[0].Annotations
	g.Expect(sets(DHCP(in).Objects)).To(HaveLen(2), "the first may never have run")
	server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted}}
	p := DHCP(in)
	g.Expect(sets(p.Objects)).To(HaveLen(1))
	g.Expect(p.Findings).To(ContainElement(postponed))
	server.Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.2", ServesWith: []v1alpha1.IPAddress{"192.168.100.2"}}, {IP: "192.168.100.3", ServesWith: []v1alpha1.IPAddress{"192.168.100.3"}}}
	g.Expect(sets(DHCP(in).Objects)).To(HaveLen(1))

	in.Further[0].Running = both[1].Annotations
	g.Expect(sets(DHCP(in).Objects)).To(HaveLen(2), "one that runs stays")
	in.Further[0].Running = nil
	server.Status.Instances[0].ServesWith = []v1alpha1.IPAddress{"192.168.100.2", "192.168.100.3"}
	p = DHCP(in)
	g.Expect(sets(p.Objects)).To(HaveLen(2))
	g.Expect(p.Findings).NotTo(ContainElement(postponed))
}

func TestOneInstanceIsUpdatedAfterTheOther(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
	in.EachInstance(func(i *Instance) { i.Now.PullOver, i.Now.Turn = true, true })
	now := func() []string {
		all := sets(DNS(in).Objects)
		return []string{image(all[0]), image(all[1])}
	}
	g.Expect(now()).To(Equal([]string{imageAfter, imageBefore}), "the first goes first")
	p := DNS(in)
	g.Expect(p.AwaitsPeer).To(BeTrue())
	g.Expect(p.Findings).To(ContainElement(HaveField("Reason", "WaitingForInstance")))

	in.Running, in.Now.Serves, in.Now.Rolled = sets(p.Objects)[0].Annotations, false, false
	g.Expect(now()).To(Equal([]string{imageAfter, imageBefore}), "until it serves")
	in.Now.Serves, in.Now.Rolled = true, true
	g.Expect(now()).To(Equal([]string{imageAfter, imageAfter}), "then the second")
}

func TestAnInstanceIsNotUpdatedWhileTheOtherIsAway(t *testing.T) {
	for lost := range 2 {
		g, in := NewWithT(t), two()
		runs(&in)
		in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
		in.EachInstance(func(i *Instance) { i.Now.PullOver, i.Now.Turn = true, true })
		if lost == 0 {
			in.Now.Serves, in.Now.Rolled = false, false
		} else {
			in.Further[0].Now.Serves, in.Further[0].Now.Rolled = false, false
		}
		all := sets(DNS(in).Objects)
		g.Expect(image(all[lost])).To(Equal(imageAfter), "who does not serve is mended at once")
		g.Expect(image(all[1-lost])).To(Equal(imageBefore))
	}
}

// That the second waits for the first says less than what the first waits for.
func TestWhatTheFirstInstanceWaitsForIsSaidAlone(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
	p := DNS(in)
	g.Expect(p.AwaitsPeer).To(BeTrue())
	g.Expect(p.Findings).To(ConsistOf(HaveField("Reason", "PullingImages")))
}

// A second instance whose pod never came keeps no change from the first.
func TestAnInstanceIsUpdatedBesideOneThatNeverServed(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
	in.EachInstance(func(i *Instance) { i.Now.PullOver, i.Now.Turn = true, true })
	delete(in.Further[0].Running, names.AnnotationServed)
	in.Further[0].Now = Now{Starts: true}
	g.Expect(image(sets(DNS(in).Objects)[0])).To(Equal(imageBefore), "while it starts")
	in.Further[0].Now.Starts = false
	g.Expect(image(sets(DNS(in).Objects)[0])).To(Equal(imageAfter))
}

// A pod that fails two probes while the other instance's new pod starts is likely to serve first.
func TestAnInstanceIsNotReplacedWhileTheOnlyOtherStarts(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
	in.EachInstance(func(i *Instance) { i.Now.PullOver, i.Now.Turn = true, true })
	in.Now.Serves, in.Now.Rolled = false, false
	in.Further[0].Now = Now{Starts: true}
	p := DNS(in)
	g.Expect(image(sets(p.Objects)[0])).To(Equal(imageBefore))
	g.Expect(p.Findings).To(ContainElement(And(HaveField("Reason", "WaitingForInstance"), HaveField("Message", ContainSubstring("or have one instance only")))))
	in.Further[0].Now.Starts = false
	g.Expect(image(sets(DNS(in).Objects)[0])).To(Equal(imageAfter), "neither comes up by itself")
	in.Further[0].Now = Now{Starts: true, Serves: true}
	g.Expect(image(sets(DNS(in).Objects)[0])).To(Equal(imageAfter), "the other serves")
}

// On the other instance's node, the first one's images are of no use.
func TestTheImagesOfTheFirstInstanceArePulledBesideIt(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.Server.Spec.Image, in.Settings.AllowImageOverride = imageAfter, true
	pullers := kindIn[*accore.PodApplyConfiguration](DNS(in).Objects)
	g.Expect(pullers).To(HaveLen(1))
	encoded := string(desired.Encoded(pullers[0].Spec.Affinity.PodAffinity))
	g.Expect(encoded).To(ContainSubstring(`{"key":"` + names.LabelOrdinal + `","operator":"DoesNotExist"}`))
}

// The turn is requested for one instance at a time.
func TestTheTurnIsThatOfTheInstanceThatGoes(t *testing.T) {
	g, in := NewWithT(t), two()
	runs(&in)
	in.EachInstance(func(i *Instance) { delete(i.Running, names.AnnotationSeal); i.Now.PullOver = true })
	in.Settings.Image = imageAfter
	p := DNS(in)
	g.Expect(p.AwaitsTurn).To(BeTrue())
	g.Expect(p.Next).To(Equal(0))
	in.Now.Turn = true
	in.Running = sets(DNS(in).Objects)[0].Annotations
	p = DNS(in)
	g.Expect(image(sets(p.Objects)[0])).To(Equal(imageAfter))
	g.Expect(p.AwaitsTurn).To(BeTrue())
	g.Expect(p.Next).To(Equal(1))
}

// Captured addresses are the first one's. Each Envoy has the bootstrap that its own sidecar came with.
func TestASecondProxyHasItsAddressAndItsBootstrap(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.ProxyServer{}
	server.Namespace, server.Name = "clusters", "c1-proxy"
	server.Spec.NetworkConfig = v1alpha1.ProxyNetworkConfig{
		ServerIP: "192.168.100.4", AdditionalServerIPs: []v1alpha1.IPAddress{"192.168.100.6"},
		CapturedAddresses: []v1alpha1.CapturedAddress{{IP: "203.0.113.7", Ports: []v1alpha1.Port{6443}}},
	}
	in := Child[*v1alpha1.ProxyServer]{server, two().Surroundings}
	in.NAD.Spec.Config = `{"cniVersion":"0.4.0","type":"bridge","bridge":"br100","capabilities":{"ips":true},"ipam":{"type":"static"}}`
	in.Further[0].NAD = in.NAD
	deployments := func() []*acapps.DeploymentApplyConfiguration {
		return kindIn[*acapps.DeploymentApplyConfiguration](Proxy(in).Objects)
	}
	bootstraps := func() map[string]string {
		all := map[string]string{}
		for _, c := range kindIn[*accore.ConfigMapApplyConfiguration](Proxy(in).Objects) {
			all[*c.Name] = c.Data[BootstrapKey]
		}
		return all
	}
	all := deployments()
	g.Expect(all).To(HaveLen(2))
	g.Expect([]string{*all[0].Name, *all[1].Name}).To(Equal([]string{"c1-proxy-deployment", "c1-proxy-deployment-1"}))
	g.Expect(all[0].Spec.Template.Annotations[names.AnnotationNetworks]).To(ContainSubstring(`"ips":["192.168.100.4/32","203.0.113.7/32"]`))
	g.Expect(all[1].Spec.Template.Annotations[names.AnnotationNetworks]).To(ContainSubstring(`"ips":["192.168.100.6/32"]`))
	g.Expect(all[0].Spec.Selector.MatchLabels).NotTo(HaveKey(names.LabelOrdinal), "a Deployment's selector never changes")
	g.Expect(all[1].Spec.Selector.MatchLabels).To(HaveKeyWithValue(names.LabelOrdinal, "1"))
	g.Expect(all[1].Spec.Template.Spec.Containers[0].Args).To(ContainElement("--instance=1"))
	for i, name := range []string{"envoy-bootstrap-c1-proxy", "envoy-bootstrap-1-c1-proxy"} {
		g.Expect(all[i].Spec.Template.Spec.Volumes).To(ContainElement(HaveField("ConfigMap", HaveValue(HaveField("Name", HaveValue(Equal(name)))))))
	}

	newest, older := bootstraps()["envoy-bootstrap-c1-proxy"], "node: {id: older}\n"
	w := proxyWorkloads(in)[0]
	old, _ := releases(w, w.proxy(in.Settings, older))
	in.Running, in.Bootstrap, in.Now = old.annotations, older, Now{Serves: true, Rolled: true}
	g.Expect(bootstraps()).To(Equal(map[string]string{"envoy-bootstrap-c1-proxy": older, "envoy-bootstrap-1-c1-proxy": newest}))
}
