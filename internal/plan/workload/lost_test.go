package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Two DNS instances look at a proxy. Its pod is replaced elsewhere only if nobody can find it any more.
func TestAPodThatNobodyFindsIsLost(t *testing.T) {
	const (
		answers, silent, lost, confirmed = v1alpha1.HealthAnswers, v1alpha1.HealthSilent, v1alpha1.HealthLost, v1alpha1.HealthConfirmed
		nothing                          = v1alpha1.HealthState("")
	)
	on := func(node string, state v1alpha1.HealthState) Lookout {
		l := Lookout{Node: node, Said: v1alpha1.Instance{Health: []v1alpha1.Health{{IP: "192.168.100.6", State: answers}, {IP: "192.168.100.7", State: lost}}}}
		if state != nothing {
			l.Said.Health = append(l.Said.Health, v1alpha1.Health{IP: "192.168.100.4", State: state})
		}
		return l
	}
	up, other := func(state v1alpha1.HealthState) Lookout { return on("a", state) }, func(state v1alpha1.HealthState) Lookout { return on("b", state) }
	away := func(state v1alpha1.HealthState) Lookout { return on("", state) }
	settled, young, stranded := RunningPod{Settled: true}, RunningPod{}, RunningPod{Settled: true, Stranded: true}
	for name, c := range map[string]struct {
		pod         RunningPod
		by          []Lookout
		lost, later bool
	}{
		"both find it":                                {settled, []Lookout{up(answers), other(answers)}, false, false},
		"one hears nothing yet":                       {settled, []Lookout{up(answers), other(silent)}, false, false},
		"one has lost it, the other says no more":     {settled, []Lookout{up(answers), other(lost)}, true, false},
		"the other finds it":                          {settled, []Lookout{up(confirmed), other(lost)}, false, false},
		"both have lost it":                           {settled, []Lookout{up(lost), other(lost)}, true, false},
		"both have lost it, from one node":            {settled, []Lookout{up(lost), up(lost)}, false, false},
		"the other is of an older release":            {settled, []Lookout{up(nothing), other(lost)}, false, false},
		"there is one alone":                          {settled, []Lookout{up(lost)}, false, false},
		"the other's node has not reported for long":  {settled, []Lookout{away(answers), up(lost)}, false, false},
		"it was lost to one that does not report":     {settled, []Lookout{away(lost), up(answers), other(answers)}, false, false},
		"it hears no proxy at all":                    {settled, []Lookout{up(answers), {Node: "b", Said: v1alpha1.Instance{Health: []v1alpha1.Health{{IP: "192.168.100.4", State: lost}, {IP: "192.168.100.6", State: silent}}}}}, false, false},
		"there is one proxy alone":                    {settled, []Lookout{{Node: "a", Said: v1alpha1.Instance{Health: []v1alpha1.Health{{IP: "192.168.100.4", State: lost}}}}, other(lost)}, true, false},
		"it has just been moved":                      {young, []Lookout{up(answers), other(lost)}, false, true},
		"nobody looks, and its node reports":          {settled, nil, false, false},
		"nobody looks, and its node does not":         {stranded, nil, true, false},
		"it is cut off from the API server only":      {stranded, []Lookout{away(answers), up(answers)}, false, false},
		"that, and another disputes":                  {stranded, []Lookout{up(confirmed), other(silent)}, false, false},
		"that, and the network pauses":                {stranded, []Lookout{away(answers), up(silent)}, false, false},
		"it is on a lost node with all who find it":   {stranded, []Lookout{away(answers), away(answers)}, true, false},
		"it is on a lost node, and lost to one alone": {stranded, []Lookout{up(lost)}, true, false},
		"one of an older release serves":              {stranded, []Lookout{up(nothing)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, Surroundings{}}
			in.Server.Spec.NetworkConfig.ServerIP = "192.168.100.4"
			in.Pods, in.Lookouts = []RunningPod{c.pod}, c.by
			all, later := in.lost()
			g.Expect(len(all) == 1).To(Equal(c.lost))
			g.Expect(later).To(Equal(c.later))
		})
	}
}

// A successor keeps away from the node of a lost pod only: where an older one just ends, it takes its place there.
func TestASuccessorKeepsAwayFromALostPodsNode(t *testing.T) {
	g, in := NewWithT(t), Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, Surroundings{}}
	in.Server.Namespace, in.Server.Name, in.Server.Spec.NetworkConfig.ServerIP = "clusters", "c1-proxy", "192.168.100.4"
	in.NAD = aServer().NAD
	template := proxyWorkloads(in)[0].proxy(in.Settings, "")
	required := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	g.Expect(required).To(ConsistOf(HaveField("LabelSelector.MatchLabels", Equal(map[string]string{
		names.LabelApp: "proxy", names.LabelInstance: "c1-proxy", names.LabelLost: "true",
	}))))
	g.Expect(template.Labels).NotTo(HaveKey(names.LabelLost))
	minds := func(instance int) *acmeta.LabelSelectorRequirementApplyConfiguration {
		w := proxyWorkloads(in)[0]
		w.Instance = instance
		preferred := w.beside().PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		g.Expect(preferred).To(HaveLen(1))
		return &preferred[0].PodAffinityTerm.LabelSelector.MatchExpressions[0]
	}
	ordinal := acmeta.LabelSelectorRequirement().WithKey(names.LabelOrdinal)
	g.Expect(minds(0)).To(Equal(ordinal.WithOperator(metav1.LabelSelectorOpExists)), "the other instance only")
	g.Expect(minds(1)).To(Equal(ordinal.WithOperator(metav1.LabelSelectorOpNotIn).WithValues("1")))
	for _, t := range template.Spec.Tolerations {
		g.Expect(t.TolerationSeconds).To(HaveValue(BeNumerically(">", UnreachableSeconds)), "a proxy that serves the VLAN is not ended for its node's silence")
	}
}

// Somebody who pauses an Infra or breaks its network does not want its address to stay on a lost node.
func TestALostPodOfAFrozenProxyIsReplaced(t *testing.T) {
	g, in := NewWithT(t), Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, Surroundings{}}
	in.Server.Spec.NetworkConfig.ServerIP = "192.168.100.4"
	in.Pods = []RunningPod{{Settled: true, Stranded: true}}
	p := Proxy(in)
	g.Expect(p.Frozen).To(BeTrue())
	g.Expect(p.Lost).To(HaveLen(1))
}

// A Deployment would end the pod that serves for a new template, and make none of it while the one on the lost node cannot end. The other proxy's
// pod does not wait for that one.
func TestANewTemplateWaitsWhileALostPodCannotEnd(t *testing.T) {
	for number := range 2 {
		g, in := NewWithT(t), Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, two().Surroundings}
		in.Server.Namespace, in.Server.Name = "clusters", "c1-proxy"
		in.Server.Spec.NetworkConfig.ServerIP, in.Server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.3", []v1alpha1.IPAddress{"192.168.100.4"}
		plan := func() (images []string, p ChildPlan) {
			p = Proxy(in)
			all := kindIn[*acapps.DeploymentApplyConfiguration](p.Objects)
			g.Expect(all).To(HaveLen(2), "%v", p.Findings)
			in.Running, in.Further[0].Running = all[0].Annotations, all[1].Annotations
			for _, d := range all {
				images = append(images, *d.Spec.Template.Spec.Containers[0].Image)
			}
			return images, p
		}
		plan()
		in.EachInstance(func(i *Instance) { i.Now = Now{Serves: true, Rolled: true, PullOver: true, Turn: true} })
		plan() // which records that they served
		of := &in.Instance
		if number > 0 {
			of = &in.Further[0]
		}
		of.Now.Ending = EndingPod{Name: "lost", Node: "n2"}
		_, p := plan()
		g.Expect(p.Findings).To(BeEmpty(), "nothing is to change")
		in.Server.Spec.ManagerImage, in.Settings.AllowImageOverride = imageAfter, true
		for range 2 {
			_, p = plan()
		}
		images, p := plan()
		g.Expect(images[number]).To(Equal(imageBefore))
		g.Expect(images[1-number]).To(Equal(imageAfter), "the other proxy's pod can end")
		g.Expect(p.Findings).To(ConsistOf(And(HaveField("Reason", "WaitingForLostPod"),
			HaveField("Message", And(ContainSubstring("the new pod with "+[]string{"192.168.100.3", "192.168.100.4"}[number]), HaveSuffix("run: kubectl taint nodes n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))))))
		of.Now.Serves, of.Now.Rolled = false, false
		images, _ = plan()
		g.Expect(images[number]).To(Equal(imageBefore), "nothing but its successor can serve")
		of.Now = Now{Serves: true, Rolled: true, PullOver: true, Turn: true}
		images, p = plan()
		g.Expect(images).To(Equal([]string{imageAfter, imageAfter}), "it has ended")
		g.Expect(p.Findings).To(BeEmpty())
	}
}
