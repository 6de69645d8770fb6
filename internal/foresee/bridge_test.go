package foresee

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Nobody but the operator asks registries. What they will say is assumed where it can be, and said to be unknown.
func TestWhatRegistriesWillSayIsNotKnown(t *testing.T) {
	const (
		digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
		tagged = "quay.io/example/release:4.20.5-multi"
		bare   = "quay.io/example/release@" + digest
		found  = "quay.io/example/os:4.20.4"
	)
	hosted := func(release string) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{Spec: hyperv1.HostedClusterSpec{Release: hyperv1.Release{Image: release}}}
	}
	for name, c := range map[string]struct {
		mapping        map[string]string
		release        string
		is             *hyperv1.HostedCluster
		status, reason string
		image, unknown string
	}{
		"the image is mapped":        {map[string]string{"4.20.5": "quay.io/example/os:1"}, tagged, nil, "", "", "", ""},
		"a tag says the version":     {map[string]string{bridge.RepositoryKey: "quay.io/example/os"}, tagged, nil, "", "", "quay.io/example/os:4.20.5", "whether registries have quay.io/example/os:4.20.5"},
		"a digest says none":         {map[string]string{bridge.RepositoryKey: "quay.io/example/os"}, bare, hosted(tagged), found, "Found", "", "what follows once the operator has found"},
		"the release stays the same": {map[string]string{bridge.RepositoryKey: "quay.io/example/os"}, bare, hosted(bare), found, "Found", found, ""},
		"it had its own image":       {map[string]string{bridge.RepositoryKey: "quay.io/example/os"}, bare, hosted(bare), found, "MachineOSImage", "", "what follows once the operator has found"},
		"it is of elsewhere":         {map[string]string{bridge.RepositoryKey: "quay.io/example/os"}, bare, hosted(bare), "quay.io/example/own:1", "Found", "", "what follows once the operator has found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := &dpuv1.DPUHCPBridge{Spec: dpuv1.DPUHCPBridgeSpec{OCPReleaseImage: dpuv1.ReleaseImage(c.release)}, Status: dpuv1.DPUHCPBridgeStatus{
				BlueFieldContainerImage: c.status, Conditions: []metav1.Condition{{Type: dpuv1.ConditionBlueFieldContainerImageAvailable, Reason: c.reason}},
			}}
			p := change.BridgePicture{Input: bridge.Input{Bridge: b, Mapping: &corev1.ConfigMap{Data: c.mapping}, HostedCluster: c.is}}
			answered(&p)
			g.Expect(p.Answer.Image).To(Equal(c.image))
			if c.unknown == "" {
				g.Expect(p.Unknown).To(BeEmpty())
			} else {
				g.Expect(p.Unknown).To(ConsistOf(ContainSubstring(c.unknown)))
			}
		})
	}
}

// Who may not read the kubeconfig is not told that the operator may not.
func TestAViewersRightsAreNotTheOperators(t *testing.T) {
	g := NewWithT(t)
	other := finding.Wait(dpuv1.ConditionKubeconfigInjected, "WaitingForKubeconfig").Say("there is none")
	for _, in := range []bridge.Input{{Injected: bridge.Secret{Denied: true}}, {Kubeconfig: bridge.Kubeconfig{Secret: bridge.Secret{Denied: true}}}} {
		p := change.BridgePicture{Input: in}
		p.Plan.Findings = []finding.Finding{bridge.Denied(dpuv1.ConditionKubeconfigInjected, "dpf"), other}
		unshared(&p)
		g.Expect(p.Plan.Findings).To(ConsistOf(other))
		g.Expect(p.Unknown).To(ConsistOf(ContainSubstring("you may not get the Secrets")))
	}
	p := change.BridgePicture{}
	unshared(&p)
	g.Expect(p.Unknown).To(BeEmpty())
}
