package bridgecli_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const (
	runs = "quay.io/ocp/release:4.21.3-multi"
	next = "quay.io/ocp/release:4.22.1-multi"
)

// platform is one on which the bridge's release comes next.
func platform() *bridgecli.Platform {
	b := &dpuv1.DPUHCPBridge{Spec: dpuv1.DPUHCPBridgeSpec{OCPReleaseImage: runs}}
	b.Name, b.Namespace, b.Generation, b.Status.ObservedGeneration = "dpu1", "clusters", 3, 3
	for _, kind := range []string{dpuv1.ConditionReady, dpuv1.ConditionIgnitionConfigured} {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: kind, Status: "True"})
	}
	hc := &hyperv1.HostedCluster{Spec: hyperv1.HostedClusterSpec{Release: hyperv1.Release{Image: runs}}}
	hc.Generation, hc.Labels = 2, map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelOwnerUID: "a-restored-bridge", names.LabelBridge: b.Name, names.LabelBridgeNamespace: b.Namespace}
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterProgressing), Status: "False", ObservedGeneration: 2}}
	return &bridgecli.Platform{
		Bridge: b, HostedCluster: hc, ImagesKey: types.NamespacedName{Namespace: "oooi-system", Name: "our-images"},
		Management: &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.22.0"}}}},
		Supported:  []string{"4.22", "4.21"}, Images: map[string]string{"4.22.1": "quay.io/example/rhcos-bluefield:4.22.1"}, DPF: "v26.4.0",
	}
}

// other is another bridge, whose control plane may be on its way.
func other(name, release string, progressing bool) dpuv1.DPUHCPBridge {
	b := dpuv1.DPUHCPBridge{Spec: dpuv1.DPUHCPBridgeSpec{OCPReleaseImage: dpuv1.ReleaseImage(release)}}
	b.Namespace, b.Name = "clusters", name
	if progressing {
		b.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionHostedClusterProgressing, Status: "True"}}
	}
	return b
}

func at(p *bridgecli.Platform, release string) {
	p.Bridge.Spec.OCPReleaseImage, p.HostedCluster.Spec.Release.Image = dpuv1.ReleaseImage(release), release
}

func TestAnUpgradeIsOneStepAfterAnother(t *testing.T) {
	const digest = "quay.io/ocp/release@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		change func(*bridgecli.Platform)
		to     string
		states string // of oooi, management cluster, MCE, hosted cluster, DPF, DPUs
		says   string
	}{
		"all is there":              {func(*bridgecli.Platform) {}, next, "done done done next later later", "oooi bridge upgrade dpu1 -n clusters --to " + next},
		"the operator stands still": {func(p *bridgecli.Platform) { p.Bridge.Generation++ }, next, "blocked done done later later later", "is it running?"},
		"the management cluster is older": {func(p *bridgecli.Platform) { p.Management.Status.History[0].Version = "4.21.9" }, next,
			"done next done later later later", "it runs 4.21.9: upgrade it to 4.22 first"},
		"the management cluster is on its way": {func(p *bridgecli.Platform) { p.Management.Status.History[0].State = configv1.PartialUpdate }, next,
			"done underway done later later later", "upgraded to 4.22.0"},
		"no OpenShift":       {func(p *bridgecli.Platform) { p.Management = nil }, next, "done look done next later later", "ClusterVersion"},
		"an older MCE":       {func(p *bridgecli.Platform) { p.Supported = []string{"4.21", "4.20"} }, next, "done done next later later later", "supports 4.21, 4.20"},
		"HyperShift is mute": {func(p *bridgecli.Platform) { p.Supported = nil }, next, "done done look next later later", "supported-versions"},
		"a skipped version":  {func(p *bridgecli.Platform) { at(p, "quay.io/ocp/release:4.20.9-multi") }, next, "done done done blocked later later", "go to 4.21 first"},
		"back to an older version": {func(p *bridgecli.Platform) { p.Images["4.20.9"] = "quay.io/example/a:b" }, "quay.io/ocp/release:4.20.9-multi",
			"done done next later later later", "supports 4.22, 4.21"},
		"back, where HyperShift has it": {func(p *bridgecli.Platform) { p.Supported = append(p.Supported, "4.20") }, "quay.io/ocp/release:4.20.9-multi",
			"done done done blocked later later", "no older minor version"},
		"its image is looked up": {func(p *bridgecli.Platform) {
			p.Images = map[string]string{"repository": "quay.io/example/rhcos-bluefield"}
		}, next,
			"done done done next later later", "its preconditions hold"},
		"its image is not there": {func(p *bridgecli.Platform) {
			p.Asked = bridge.Answer{Reason: bridge.ImageNotFound, Message: "quay.io/example/rhcos-bluefield:4.22.1: does not exist"}
		}, next, "done done done blocked later later", "quay.io/example/rhcos-bluefield:4.22.1: does not exist: push the release's BlueField container image, or add the release to ConfigMap oooi-system/our-images"},
		"its registry is not reached from here": {func(p *bridgecli.Platform) {
			p.Asked = bridge.Answer{Reason: bridge.RegistryUnreachable, Message: "no answer"}
		}, next, "done done done next later later", "is not known here (no answer), and the hosted cluster keeps its release until the operator finds it"},
		"no image":         {func(p *bridgecli.Platform) { p.Images = nil }, next, "done done done blocked later later", "add a key (4.22.1) to ConfigMap oooi-system/our-images"},
		"an image by hand": {func(p *bridgecli.Platform) { p.Bridge.Spec.MachineOSImage = "a.b/c:d" }, next, "done done done blocked later later", "machineOSImage is a.b/c:d"},
		"a bridge not ready": {func(p *bridgecli.Platform) {
			p.Bridge.Status.Conditions[0] = metav1.Condition{Type: dpuv1.ConditionReady, Status: "False", Reason: "HostedClusterNotAvailable", Message: "wait"}
		}, next, "done done done blocked later later", "HostedClusterNotAvailable: wait"},
		"HyperShift has not begun": {func(p *bridgecli.Platform) { p.Bridge.Spec.OCPReleaseImage = next }, next, "done done done underway later later", "being brought to " + next},
		"the release is held back": {func(p *bridgecli.Platform) {
			p.Bridge.Spec.OCPReleaseImage = next
			p.Bridge.Status.Conditions[0] = metav1.Condition{Type: dpuv1.ConditionReady, Status: "False", Reason: "TemplatesAmbiguous", Message: "delete ConfigMap dpf/mine"}
		}, next, "done done done blocked later later", "the HostedCluster keeps " + runs + ": TemplatesAmbiguous: delete ConfigMap dpf/mine"},
		"there is no hosted cluster yet":  {func(p *bridgecli.Platform) { p.HostedCluster = nil }, runs, "done done done blocked later later", "there is no HostedCluster yet"},
		"the hosted cluster is another's": {func(p *bridgecli.Platform) { p.HostedCluster.Labels = nil }, runs, "done done done blocked later later", "is not the bridge's"},
		"the hosted cluster goes":         {func(p *bridgecli.Platform) { p.HostedCluster.DeletionTimestamp = &metav1.Time{} }, runs, "done done done blocked later later", "is being deleted"},
		"HyperShift has not seen it":      {func(p *bridgecli.Platform) { at(p, next); p.HostedCluster.Generation++ }, next, "done done done underway later later", "does not say yet"},
		"its control plane alone is upgraded": {func(p *bridgecli.Platform) {
			at(p, next)
			p.Version.History = []bridge.ControlPlaneUpdate{{State: configv1.PartialUpdate, Image: next}}
		}, next, "done done done underway later later", "HostedClusterProgressing is False"},
		"HyperShift is at it": {func(p *bridgecli.Platform) {
			at(p, next)
			p.HostedCluster.Status.Conditions[0].Status = "True"
		}, next, "done done done underway later later", "HostedClusterProgressing"},
		"the hosted cluster is there": {func(p *bridgecli.Platform) { at(p, next) }, next, "done done done done look look", "create a BFB with a name of its own"},
		"what DPUs get is not there": {func(p *bridgecli.Platform) {
			at(p, next)
			p.Bridge.Status.Conditions[1].Status = "False"
		}, next, "done done done done look blocked", "IgnitionConfigured"},
		"DPF, and another hosted cluster": {func(p *bridgecli.Platform) {
			at(p, next)
			p.Others = []dpuv1.DPUHCPBridge{other("dpu2", runs, false), other("dpu3", next, false), other("dpu4", next, true), other("dpu5", "quay.io/ocp/release:4.22.2-multi", false), other("dpu6", digest, false)}
		}, next, "done done done done look look", "it is v26.4.0; oooi knows 26.4: see in its release notes which version of hosted clusters it supports, and upgrade it once they have that one; other hosted clusters are not at the release yet, and come before it, too: clusters/dpu2 (" + runs + "), clusters/dpu4 (" + next + "), clusters/dpu6 (" + digest + ")\n"},
		"many other hosted clusters": {func(p *bridgecli.Platform) {
			for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
				p.Others = append(p.Others, other(name, runs, false))
			}
		}, next, "done done done next later later", "clusters/f (" + runs + ") and 2 more\n"},
		"an unknown DPF": {func(p *bridgecli.Platform) { at(p, next); p.DPF = "v25.10.1" }, next, "done done done done look look", "it is v25.10.1; oooi knows 26.4"},
		"an older DPF, and services for another": {func(p *bridgecli.Platform) {
			at(p, next)
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates = "v25.10.1", true
		}, next, "done done done done next later", "it is v25.10.1, and oooi has the bridge's DPUServiceTemplates for 26.4 only: upgrade DPF to such a version, or make them yourself and remove manageDPUServiceTemplates\n"},
		"an older DPF, its services, and another hosted cluster": {func(p *bridgecli.Platform) {
			at(p, next)
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates = "v25.10.1", true
			p.Others = []dpuv1.DPUHCPBridge{other("dpu2", runs, false)}
		}, next, "done done done done blocked later", "upgrade DPF to such a version, or make them yourself and remove manageDPUServiceTemplates; other hosted clusters are not at the release yet, and come before it, too: clusters/dpu2 (" + runs + ")\n"},
		"an older DPF, its services, and hosted clusters that are not read": {func(p *bridgecli.Platform) {
			at(p, next)
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates, p.OthersUnread = "v25.10.1", true, true
		}, next, "done done done done look look", "upgrade DPF to such a version, or make them yourself and remove manageDPUServiceTemplates; you may not list the other bridges"},
		"a newer DPF, and services for it": {func(p *bridgecli.Platform) {
			at(p, next)
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates = "v27.1.0", true
		}, next, "done done done done blocked later", "it is v27.1.0, and oooi has the bridge's DPUServiceTemplates for 26.4 only: take a release of oooi that has them for this one"},
		"no DPF, and services for it": {func(p *bridgecli.Platform) {
			at(p, next)
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates = "", true
		}, next, "done done done done blocked later", "no DPFOperatorConfig reports a version, and oooi has the bridge's DPUServiceTemplates for 26.4 only: see that DPF's operator runs"},
		"services, and the hosted cluster is next": {func(p *bridgecli.Platform) {
			p.DPF, p.Bridge.Spec.ManageDPUServiceTemplates = "v25.10.1", true
		}, next, "done done done next later later", "upgrade DPF to such a version"},
		"services for a known DPF": {func(p *bridgecli.Platform) {
			at(p, next)
			p.Bridge.Spec.ManageDPUServiceTemplates = true
		}, next, "done done done done look look", "it is v26.4.0; oooi knows 26.4"},
		"no DPF, a release by digest": {func(p *bridgecli.Platform) {
			p.DPF = ""
			p.Images["sha256-"+strings.TrimPrefix(digest, "quay.io/ocp/release@sha256:")] = "quay.io/example/a:b"
		}, digest, "done look look next later later", "names no version"},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := NewWithT(t), platform()
			c.change(p)
			steps := p.Upgrade(c.to)
			var states []string
			for _, s := range steps {
				states = append(states, string(s.State))
			}
			g.Expect(strings.Join(states, " ")).To(Equal(c.states))
			g.Expect(bridgecli.MayStart(steps)).To(Equal(states[3] == "next"))
			var table bytes.Buffer
			g.Expect(bridgecli.StepsTable(&table, steps)).To(Succeed())
			g.Expect(table.String()).To(ContainSubstring(c.says))
		})
	}
}
