package dpu_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/dpu"
)

var at = metav1.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)

func card(conditions ...metav1.Condition) *dpf.DPU {
	return &dpf.DPU{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "node1-0000-03-00", CreationTimestamp: at},
		Spec:       dpf.DPUSpec{Cluster: dpf.Reference{Name: "c1", Namespace: "clusters"}, BFB: "rhcos", DPUFlavor: "ovn"},
		Status:     dpf.DPUStatus{Phase: "Some Phase", Conditions: conditions},
	}
}

// is became so some minutes after the DPU was made.
func is(condition string, minutes int, messages ...string) metav1.Condition {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "AsTold", LastTransitionTime: metav1.NewTime(at.Add(time.Duration(minutes) * time.Minute))}
	for _, c.Message = range messages {
		c.Status = metav1.ConditionFalse
	}
	return c
}

func object[T any](text string) (o T) {
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

const (
	config  = "{apiVersion: operator.dpu.nvidia.com/v1alpha1, kind: DPFOperatorConfig, metadata: {name: dpf, namespace: dpf-operator-system}, spec: {provisioningController: {enableDynamicBFCFGTemplates: true}}}"
	flavor  = "{apiVersion: provisioning.dpu.nvidia.com/v1alpha1, kind: DPUFlavor, metadata: {name: ovn, namespace: dpf, annotations: {provisioning.dpu.nvidia.com/skip-bfcfg-size-check: ''}}}"
	checked = "{apiVersion: provisioning.dpu.nvidia.com/v1alpha1, kind: DPUFlavor, metadata: {name: ovn, namespace: dpf}}"
)

// template of the card.
func template(name string) corev1.ConfigMap {
	const of = "provisioning.dpu.nvidia.com/bfcfg-template"
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-operator-system", Name: name, Labels: map[string]string{of: "true"}, Annotations: map[string]string{
			of + "-cluster-name": "c1", of + "-cluster-namespace": "clusters", of + "-bfb-name": "rhcos", of + "-bfb-namespace": "dpf",
			of + "-dpuflavor-name": "ovn", of + "-dpuflavor-namespace": "dpf",
		}},
		Data: map[string]string{"BF_CFG_TEMPLATE": strings.Repeat("x", 200<<10)},
	}
}

func facts(templates ...corev1.ConfigMap) dpu.Facts {
	return dpu.Facts{Configs: []dpf.DPFOperatorConfig{object[dpf.DPFOperatorConfig](config)}, Flavors: []dpf.DPUFlavor{object[dpf.DPUFlavor](flavor)}, Templates: templates}
}

func TestATemplateIsFoundAsDPFFindsIt(t *testing.T) {
	NewWithT(t).Expect(facts(template("a"), template("b")).TemplatesOf(card())).To(HaveLen(2))
	for want, f := range map[string]dpu.Facts{"a": facts(template("a")), "": facts(template("a"), template("b"))} {
		NewWithT(t).Expect(f.RowOf(card(), dpu.Approvals{}).Template).To(Equal(want))
	}
	one := template("a")
	for key := range one.Annotations {
		other := template("a")
		other.Annotations = maps.Clone(one.Annotations)
		other.Annotations[key] += "x"
		NewWithT(t).Expect(facts(other).TemplatesOf(card())).To(BeEmpty(), key)
	}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"elsewhere":    func(c *corev1.ConfigMap) { c.Namespace = "clusters" },
		"not labelled": func(c *corev1.ConfigMap) { c.Labels = nil },
		"not so":       func(c *corev1.ConfigMap) { c.Labels["provisioning.dpu.nvidia.com/bfcfg-template"] = "yes" },
	} {
		other := template("a")
		change(&other)
		NewWithT(t).Expect(facts(other).TemplatesOf(card())).To(BeEmpty(), name)
	}
}

func TestTheSizeOfATemplateMattersForSomeDPUs(t *testing.T) {
	other := template("b")
	other.Annotations["provisioning.dpu.nvidia.com/bfcfg-template-cluster-name"] = "c2"
	f := facts(template("a"), other)
	NewWithT(t).Expect(f.Measured([]dpf.DPU{*card()})).To(BeEmpty(), "DPF does not check it")
	f.Flavors = []dpf.DPUFlavor{object[dpf.DPUFlavor](checked)}
	NewWithT(t).Expect(f.Measured([]dpf.DPU{*card()})).To(HaveExactElements(HaveField("Name", "a")))
	NewWithT(t).Expect(f.Measured([]dpf.DPU{*card(is(dpf.ConditionOSInstalled, 1))})).To(BeEmpty())
}

func TestWhatKeepsADPUFromBeingInstalledIsFoundBefore(t *testing.T) {
	small := template("a")
	small.Data["BF_CFG_TEMPLATE"] = "x"
	long := func(n int) *dpf.DPU {
		d := card()
		d.Name = strings.Repeat("d", n)
		return d
	}
	with := func(change func(*dpu.Facts)) dpu.Facts {
		f := facts(template("a"))
		change(&f)
		return f
	}
	withFlavor := func(text string) dpu.Facts {
		return with(func(f *dpu.Facts) { f.Flavors = []dpf.DPUFlavor{object[dpf.DPUFlavor](text)} })
	}
	withConfig := func(from, to string) dpu.Facts {
		return with(func(f *dpu.Facts) { f.Configs[0] = object[dpf.DPFOperatorConfig](strings.Replace(config, from, to, 1)) })
	}
	for name, c := range map[string]struct {
		facts dpu.Facts
		dpu   *dpf.DPU
		want  []string
	}{
		"all is well":               {facts(template("a")), card(), nil},
		"no template":               {facts(), card(), []string{"waiting TemplateNotFound"}},
		"two templates":             {facts(template("a"), template("b")), card(), []string{"refused TemplatesAmbiguous"}},
		"a template of another":     {facts(), long(3), []string{"waiting TemplateNotFound"}},
		"installed without":         {facts(), card(is(dpf.ConditionOSInstalled, 1)), nil},
		"a long name":               {facts(template("a")), long(64), []string{"refused DPUNameTooLong"}},
		"the longest name":          {facts(template("a")), long(63), nil},
		"a flavor with the check":   {withFlavor(checked), card(), []string{"refused TemplateTooLarge"}},
		"and no template yet":       {with(func(f *dpu.Facts) { f.Flavors, f.Templates = withFlavor(checked).Flavors, nil }), card(), []string{"waiting TemplateNotFound", "warning TemplateTooLarge"}},
		"and a small template":      {with(func(f *dpu.Facts) { f.Flavors, f.Templates = withFlavor(checked).Flavors, []corev1.ConfigMap{small} }), card(), nil},
		"a flavor that is not read": {with(func(f *dpu.Facts) { f.Flavors = nil }), card(), nil},
		"templates are off":         {withConfig("Templates: true", "Templates: false"), card(), []string{"refused TemplatesDisabled"}},
		"templates are never on":    {withConfig("enableDynamicBFCFGTemplates: true", ""), card(), []string{"refused TemplatesDisabled"}},
		"one template for all":      {withConfig("{enable", "{bfCFGTemplateConfigMap: mine, enable"), card(), []string{"refused TemplatesDisabled"}},
		"two configurations":        {with(func(f *dpu.Facts) { f.Configs = append(f.Configs, f.Configs...) }), card(), []string{"refused DPFOperatorConfigNotUnique"}},
		"nothing is known":          {dpu.Facts{}, card(), nil},
		"nothing but a name":        {dpu.Facts{}, long(64), []string{"refused DPUNameTooLong"}},
	} {
		t.Run(name, func(t *testing.T) {
			var reasons []string
			for _, f := range c.facts.Findings([]dpf.DPU{*c.dpu, *c.dpu}) {
				NewWithT(t).Expect(f).To(And(HaveField("Field", Not(BeEmpty())), HaveField("Of", Not(BeZero())), HaveField("Message", ContainSubstring(" "))))
				reasons = append(reasons, f.Severity.String()+" "+f.Reason)
			}
			NewWithT(t).Expect(reasons).To(Equal(c.want))
		})
	}
}

func TestAFlavorOfADPUDeploymentIsJudgedBeforeThereIsADPU(t *testing.T) {
	d := object[dpf.DPUDeployment]("{apiVersion: svc.dpu.nvidia.com/v1alpha1, kind: DPUDeployment, metadata: {name: d, namespace: dpf}, spec: {dpus: {flavor: ovn, bfb: rhcos}}}")
	f := dpu.Facts{Flavors: []dpf.DPUFlavor{object[dpf.DPUFlavor](checked)}, Deployment: &d}
	said := And(HaveField("Reason", "TemplateTooLarge"), HaveField("Of.Name", "ovn"),
		WithTransform(finding.Finding.YAML, ContainSubstring("annotations:\n    provisioning.dpu.nvidia.com/skip-bfcfg-size-check: \"\"\n")))
	NewWithT(t).Expect(f.Findings(nil)).To(ConsistOf(And(said, HaveField("Severity", finding.Warning))))
	f.Configs, f.Templates = facts().Configs, []corev1.ConfigMap{template("a")}
	NewWithT(t).Expect(f.Findings([]dpf.DPU{*card()})).To(ConsistOf(And(said, HaveField("Severity", finding.Refused))), "the worst is told, once")
	d.Namespace = "elsewhere"
	NewWithT(t).Expect(f.Findings(nil)).To(BeEmpty())
}

func TestANameIsTooLongBeforeThereIsADPU(t *testing.T) {
	d := object[dpf.DPUDeployment]("{apiVersion: svc.dpu.nvidia.com/v1alpha1, kind: DPUDeployment, metadata: {name: d, namespace: dpf}, spec: {dpus: {flavor: ovn, bfb: rhcos}}}")
	device := strings.Repeat("d", 57)
	n := object[dpf.DPUNode]("{apiVersion: provisioning.dpu.nvidia.com/v1alpha1, kind: DPUNode, metadata: {name: node1, namespace: dpf}, spec: {dpus: [{name: " + device + "}, {name: d" + device + "}]}}")
	f := dpu.Facts{Deployment: &d, Nodes: []dpf.DPUNode{n}}
	NewWithT(t).Expect(f.Findings(nil)).To(ConsistOf(And(HaveField("Reason", "DPUNameTooLong"), HaveField("Severity", finding.Warning), HaveField("Of.Kind", "DPUNode"), HaveField("Of.Name", "node1"),
		HaveField("Field", "spec.dpus[1].name"), HaveField("Message", ContainSubstring("DPU node1-d"+device+", a name of 64 characters")))))
	made := card()
	made.Name = "node1-d" + device
	NewWithT(t).Expect(f.Findings([]dpf.DPU{*made})).To(ConsistOf(And(HaveField("Reason", "DPUNameTooLong"), HaveField("Severity", finding.Refused), HaveField("Of.Kind", "DPU"))), "of a DPU that is there")
	d.Namespace = "elsewhere"
	NewWithT(t).Expect(f.Findings(nil)).To(BeEmpty(), "DPF makes no DPU of it for this DPUDeployment")
	f.Deployment = nil
	NewWithT(t).Expect(f.Findings(nil)).To(BeEmpty())
}

func TestARowSaysWhatADPUWaitsFor(t *testing.T) {
	stopped := dpu.Approvals{Stopped: "Connecting: not read yet"}
	open := dpu.Approvals{Explain: "oooi csr explain CSR"}
	approved := dpu.Approvals{Of: map[string]time.Time{"node1-0000-03-00": at.Add(8 * time.Minute)}}
	before := dpu.Approvals{Explain: "oooi csr explain CSR", Of: map[string]time.Time{"node1-0000-03-00": at.Add(-time.Minute)}}
	earlier := dpu.Approvals{Explain: "oooi csr explain CSR", Of: map[string]time.Time{"node1-0000-03-00": at.Add(4 * time.Minute)}}
	osInstalled, node := is(dpf.ConditionOSInstalled, 5), is("DPUClusterReady", 9)
	leaving := card(osInstalled)
	leaving.DeletionTimestamp = &at
	failed := func(condition, reason, message string) metav1.Condition {
		c := is(condition, 2)
		c.Reason, c.Message = reason, message
		return c
	}
	broken, down := failed("Error", "AsTold", "no BFB"), failed("PF0LinkDown", "PF0LinkDown", "p0 is down")
	up := is("PF0LinkDown", 3, "p0 is up")
	agent := func(d *dpf.DPU, all ...metav1.Condition) *dpf.DPU {
		d.Status.AgentStatus.Conditions = all
		return d
	}
	disk := failed("InstallError", "Hardware", "/dev/nvme0n1 is missing")
	away := is("Ready", 20, "DPU's Node node1-0000-03-00 is not Ready")
	away.Reason = "NodeNotReady"
	again := is("InstallError", 30)
	again.Reason, again.Message = "VFSetupTimedOut", "no VFs"
	const awaySaid = "it joined, and is not Ready now: DPF reports NodeNotReady: DPU's Node node1-0000-03-00 is not Ready"
	const diskSaid = "somebody has to act: the DPU reports Hardware: /dev/nvme0n1 is missing: mend that; if it does not join then, delete the DPU, so that DPF installs it anew"
	const downSaid = "the DPU reports PF0LinkDown: p0 is down: see the cable of its first port, and the switch"
	for name, c := range map[string]struct {
		facts     dpu.Facts
		dpu       *dpf.DPU
		approvals dpu.Approvals
		want      string
	}{
		"new":                 {facts(template("a")), card(), open, "DPF installs its OS"},
		"being installed":     {facts(template("a")), card(is("BFBReady", 1), is(dpf.ConditionOSInstalled, 2, "3 of 9")), open, "DPF installs its OS (OSInstalled is False: 3 of 9)"},
		"without a template":  {facts(), card(), open, "no ConfigMap in namespace dpf-operator-system is the bf.cfg template for DPUCluster clusters/c1, BFB dpf/rhcos and DPUFlavor dpf/ovn, so DPF does not install DPU node1-0000-03-00; the bridge's conditions say why there is none"},
		"booting":             {facts(), card(osInstalled), open, "no Event of the last hour says that its CSR was approved: it boots, its CSR waits (oooi csr explain CSR), or its Node does not become Ready"},
		"approved before":     {facts(), card(osInstalled), earlier, "no Event of the last hour says that its CSR was approved: it boots, its CSR waits (oooi csr explain CSR), or its Node does not become Ready"},
		"approved in another": {facts(), card(osInstalled), before, "no Event of the last hour says that its CSR was approved: it boots, its CSR waits (oooi csr explain CSR), or its Node does not become Ready"},
		"nothing is approved": {facts(), card(osInstalled), stopped, "the operator approves no CSR: Connecting: not read yet"},
		"approved":            {facts(), card(osInstalled, is("DPUClusterReady", 6, "Node not found")), approved, "its CSR is approved; its Node becomes Ready (DPUClusterReady is False: Node not found)"},
		"a Node":              {facts(), card(osInstalled, node, is("NodeEffectRemoved", 9, "draining")), stopped, "its Node is Ready; DPF finishes (NodeEffectRemoved is False: draining)"},
		"ready":               {facts(), card(osInstalled, node, is("Ready", 10)), stopped, ""},
		"broken":              {facts(), card(broken), open, "somebody has to act: DPF reports AsTold: no BFB"},
		"leaving":             {facts(), leaving, open, "DPF deletes it"},
		"installs nothing":    {facts(template("a")), agent(card(), disk), open, diskSaid},
		"DPF copies it":       {facts(template("a")), card(disk), open, diskSaid},
		"its firmware":        {facts(), agent(card(osInstalled), failed("InstallError", "FirmwareUpgradeFailed", "ATF\x1b[1m\nis not upgraded"+strings.Repeat("x", 4000))), open, "somebody has to act: the DPU reports FirmwareUpgradeFailed: ATF\\x1b[1m\\nis not upgraded" + strings.Repeat("x", 277) + "…: mend that; if it does not join then, delete the DPU, so that DPF installs it anew"},
		"DPF gives up, too":   {facts(), agent(card(broken), disk), open, diskSaid + "; DPF reports AsTold: no BFB"},
		"installed then":      {facts(), agent(card(osInstalled), disk), open, "no Event of the last hour says that its CSR was approved: it boots, its CSR waits (oooi csr explain CSR), or its Node does not become Ready"},
		"starts anew":         {facts(), agent(card(osInstalled, node, away), failed("InstallError", "VFSetupTimedOut", "no VFs")), open, awaySaid},
		"a Node of it is not": {facts(), agent(card(osInstalled, is("DPUClusterReady", 21, "node is not ready"), away), failed("InstallError", "VFSetupTimedOut", "no VFs")), open, awaySaid},
		"complains anew":      {facts(), agent(card(osInstalled, node, away), again), open, "somebody has to act: the DPU reports VFSetupTimedOut: no VFs: mend that"},
		"is back":             {facts(), agent(card(osInstalled, node, is("Ready", 40)), again), open, ""},
		"in spite of it":      {facts(), agent(card(osInstalled, node), disk), open, "its Node is Ready; DPF finishes"},
		"no cable":            {facts(), agent(card(osInstalled, down), down), open, "somebody has to act: " + downSaid},
		"a cable again":       {facts(template("a")), agent(card(down), up), open, "DPF installs its OS"},
		"copied, too":         {facts(template("a")), card(is("BFBReady", 1, "loading"), up), open, "DPF installs its OS (BFBReady is False: loading)"},
		"no cable any more":   {facts(), agent(card(osInstalled, node, is("Ready", 10)), down), open, ""},
		"no second cable":     {facts(), agent(card(osInstalled, node), failed("PF1LinkDown", "PF1LinkDown", "p1 is down")), open, "its Node is Ready; DPF finishes"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.facts.RowOf(c.dpu, c.approvals).WaitsFor).To(Equal(c.want))
		})
	}
}

func TestARowHasTheTimeOfEachStep(t *testing.T) {
	d := card(is(dpf.ConditionOSInstalled, 5), is("BFBReady", 1), is("DPUClusterReady", 6, "no Node"), is("InstallError", 7), is("PF0LinkDown", 7), is("PF1LinkDown", 7), is("Error", 6))
	r := facts().RowOf(d, dpu.Approvals{Of: map[string]time.Time{d.Name: at.Add(6 * time.Minute)}})
	after := func(minutes int) metav1.Time { return metav1.NewTime(at.Add(time.Duration(minutes) * time.Minute)) }
	NewWithT(t).Expect(r).To(And(
		HaveField("Phase", "Some Phase"), HaveField("Since", after(6)), HaveField("OSInstalled", ptr.To(after(5))), HaveField("Approved", ptr.To(after(6))),
		HaveField("NodeReady", BeNil()), HaveField("Steps", []dpu.Step{{Condition: "BFBReady", At: after(1)}, {Condition: "OSInstalled", At: after(5)}})))
}
