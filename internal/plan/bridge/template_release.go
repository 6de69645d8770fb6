package bridge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/bfcfg"
	"github.com/cldmnky/oooi/internal/dpf"
)

// Rollout says how far HyperShift is with bringing the control plane to the bridge's release.
type Rollout int

const (
	// RolledOut means that the control plane runs the release: templates may be made.
	RolledOut Rollout = iota
	// Unsaid means that HyperShift has not said it of the HostedCluster as it is now: templates of the release stay, and none is made.
	Unsaid
	// Rolling means that it does not run the release, or that there is none: no DPU may be installed.
	Rolling
)

// Rollout goes by HyperShift's own word. Where it does not report the control plane's version, that is condition Progressing, which is True
// until the hosted cluster-version operator, a part of the control plane, runs the release (hypershift v0.1.60,
// hostedcluster_controller.go, isProgressing). Neither waits for DPUs, which could not be installed then.
func (in Input) Rollout() Rollout {
	hc, release := in.cluster(), string(in.Bridge.Spec.OCPReleaseImage)
	if hc == nil || hc.DeletionTimestamp != nil || hc.Spec.Release.Image != release {
		return Rolling
	}
	if history := in.Templates.Version.History; len(history) > 0 {
		switch newest := history[0]; {
		case newest.State != configv1.CompletedUpdate:
			return Rolling
		case newest.Image != release && !slices.Contains(ImageKeys(release), newest.Version):
			return Unsaid
		}
		return RolledOut
	}
	switch c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterProgressing)); {
	case c == nil || c.ObservedGeneration != hc.Generation || c.Status == "False" && c.Reason == hyperv1.BlockedReason:
		return Unsaid
	case c.Status != "False":
		return Rolling
	}
	return RolledOut
}

// TemplateDigest is what is kept of a template's text; of a digest it is the digest itself.
func TemplateDigest(text string) string {
	const prefix = "sha256:"
	if strings.HasPrefix(text, prefix) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return prefix + hex.EncodeToString(sum[:])
}

// templateVersion identifies what this version of ours makes, by samples. Another makes all templates anew.
var templateVersion = sync.OnceValue(func() string { return TemplateDigest(whatIsMade()) })

// whatIsMade of samples, and what is refused.
func whatIsMade() string {
	var all strings.Builder
	for _, from := range samples() {
		text, err := bfcfg.Template(from)
		fmt.Fprintf(&all, "%s %v\n", text, err)
	}
	fmt.Fprintln(&all, bfcfg.Essential())
	return all.String()
}

// samples have between them everything that changes what we make.
func samples() []bfcfg.Source {
	return []bfcfg.Source{sample(false, 0), sample(false, 9000), sample(true, 9000)}
}

func sample(zeroTrust bool, mtu int) bfcfg.Source {
	const file = `{"path":%q,"contents":{"source":"data:;base64,%s"}}`
	config := fmt.Sprintf(file, "/etc/ignition-machine-config-encapsulated.json", base64.StdEncoding.EncodeToString([]byte(`{"spec":{"osImageURL":"example.com/os:1"}}`)))
	crio := fmt.Sprintf(file, "/etc/crio/crio.conf", base64.StdEncoding.EncodeToString([]byte(`pause_image = "example.com/pause:1"`)))
	var reserved map[string]resource.Quantity // nil: what the kernel's command line says of hugepages counts
	if mtu > 0 {
		reserved = map[string]resource.Quantity{"hugepages-2Mi": resource.MustParse("1Gi")}
	}
	return bfcfg.Source{
		Ignition:  fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"storage":{"files":[%s,%s]}}`, config, crio),
		MachineOS: "example.com/os:2", MTU: mtu, ZeroTrust: zeroTrust, Registry: "http://192.0.2.1", RegistryCA: "a CA",
		Flavor: &dpf.DPUFlavor{
			ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "sample", Annotations: map[string]string{dpf.AnnotationSkipSizeCheck: ""}},
			Spec: dpf.DPUFlavorSpec{OVS: dpf.DPUFlavorOVS{RawConfigScript: "true"}, SystemReservedResources: reserved,
				Grub: dpf.DPUFlavorGrub{KernelParameters: []string{"hugepagesz=2M", "hugepages=512"}},
				ConfigFiles: []dpf.ConfigFile{
					{Path: "/etc/sysctl.d/98-dpunet.conf", Operation: "override", Raw: "a"}, {Path: "/etc/mellanox/mlnx-bf.conf", Operation: "append", Raw: "b"},
					{Path: "/etc/motd", Type: dpf.AgentApplied},
				}},
		},
	}
}
