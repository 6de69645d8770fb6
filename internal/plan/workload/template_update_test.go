package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

type podTemplate = accore.PodTemplateSpecApplyConfiguration

const bridged = `{"type":"bridge","bridge":"br100","ipam":{"type":"static","addresses":[{"address":"192.168.100.3/24"}]}}`

// aServer is a DNSServer with one instance.
func aServer() Child[*v1alpha1.DNSServer] {
	in := Child[*v1alpha1.DNSServer]{&v1alpha1.DNSServer{}, Surroundings{Settings: input.Settings{Image: "example.com/oooi:1"}}}
	in.Server.Namespace, in.Server.Name = "clusters", "c1-dns"
	in.Server.Labels = map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: "clusters"}
	in.Server.Spec.NetworkConfig = v1alpha1.DNSNetworkConfig{
		Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan100"}, ServerIP: "192.168.100.3", SecondaryNetworkCIDR: "192.168.100.0/24",
	}
	in.NAD = &nad.NetworkAttachmentDefinition{Spec: nad.Spec{Config: bridged}}
	return in
}

func serverWorkload(in Child[*v1alpha1.DNSServer]) workload {
	n := in.Server.Spec.NetworkConfig
	return workloadOf(in, within(string(n.ServerIP), string(n.SecondaryNetworkCIDR)))
}

// releases returns the template that a workload gets, and the findings.
func releases(w workload, newest *podTemplate) (chosenTemplate, []finding.Finding) {
	p := &ChildPlan{}
	return w.choose(p, newest), p.Findings
}

// servedOf is the template of a server whose pod has been Ready.
func servedOf(w workload) chosenTemplate {
	first, _ := releases(w, w.dns(w.settings))
	w.running, w.now = first.annotations, Now{Serves: true, Rolled: true}
	again, _ := releases(w, w.dns(w.settings))
	return again
}

// If only the manager differs, the pods stay, and status says which update is pending and how to apply it.
func TestATemplateStaysWhenOnlyTheManagerIsNewer(t *testing.T) {
	in := aServer()
	was := servedOf(serverWorkload(in))
	for name, change := range map[string]func(*podTemplate){
		"another image":      func(p *podTemplate) { p.Spec.Containers[0].WithImage("example.com/oooi:2") },
		"another variable":   func(p *podTemplate) { p.Spec.Containers[0].WithEnv(accore.EnvVar().WithName("NEW").WithValue("1")) },
		"another flag":       func(p *podTemplate) { p.Spec.Containers[0].WithArgs("--new") },
		"another probe":      func(p *podTemplate) { p.Spec.Containers[0].ReadinessProbe.WithPeriodSeconds(7) },
		"another container":  func(p *podTemplate) { p.Spec.WithContainers(accore.Container().WithName("new")) },
		"another annotation": func(p *podTemplate) { p.WithAnnotations(map[string]string{"new": "1"}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			newer := serverWorkload(in)
			newer.running = was.annotations
			newest := newer.dns(in.Settings)
			change(newest)
			now, waits := releases(newer, newest)
			g.Expect(desired.Encoded(now.template)).To(MatchJSON(desired.Encoded(was.template)))
			g.Expect(now.annotations).To(Equal(was.annotations))
			g.Expect(waits).To(ConsistOf(And(HaveField("Reason", "TemplateUpdatePending"),
				HaveField("Message", ContainSubstring("-l app.kubernetes.io/instance=c1-dns,app=dns "+names.AnnotationSeal+"-")))))

			back, waits := releases(newer, newer.dns(in.Settings))
			g.Expect(back.annotations).To(Equal(was.annotations), "the older manager is back")
			g.Expect(waits).To(BeEmpty())
		})
	}
}

// A template that no manager wrote is not kept: the newest is applied.
func TestATemplateThatWasTamperedWithIsNotKept(t *testing.T) {
	in := aServer()
	was := servedOf(serverWorkload(in))
	for name, running := range map[string]map[string]string{
		"there is no workload":       nil,
		"it says nothing":            {},
		"its seal was taken off":     {names.AnnotationTemplate: was.annotations[names.AnnotationTemplate]},
		"its template was taken off": {names.AnnotationSeal: was.annotations[names.AnnotationSeal]},
		"its template was edited":    {names.AnnotationSeal: was.annotations[names.AnnotationSeal], names.AnnotationTemplate: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := serverWorkload(in)
			w.running = running
			newest := w.dns(input.Settings{Image: "example.com/oooi:2"})
			now, waits := releases(w, newest)
			g.Expect(now.template).To(Equal(newest))
			g.Expect(waits).To(BeEmpty())
		})
	}
}

// A manager also writes derived networks: only what they were derived from counts.
func TestANetworkThatOnlyANewerManagerChangesReplacesNoPod(t *testing.T) {
	const other = `{"type":"bridge","bridge":"br200"}`
	for name, c := range map[string]struct {
		before, after string // what it was derived from; empty if it was not derived
		replaced      bool
	}{
		"derived from the same": {"a", "a", false},
		"derived from another":  {"a", "b", true},
		"written by the user":   {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := aServer()
			in.NAD.Annotations = map[string]string{names.AnnotationInputs: c.before}
			was := servedOf(serverWorkload(in))
			in.Running, in.NAD.Annotations[names.AnnotationInputs], in.NAD.Spec.Config = was.annotations, c.after, other
			now, _ := releases(serverWorkload(in), serverWorkload(in).dns(in.Settings))
			NewWithT(t).Expect(string(desired.Encoded(now.template)) != string(desired.Encoded(was.template))).To(Equal(c.replaced))
		})
	}
}

// The digest of a pod's inputs is compared with that of an older manager: if it changes and they do not, the next manager replaces every pod
// of every cluster. A new input is omitted while it is empty.
func TestOneDecisionHasOneDigestInEveryVersion(t *testing.T) {
	g := NewWithT(t)
	w := serverWorkload(aServer())
	in := aServer()
	in.NAD.Spec.Config = `{"type": "bridge", "name": "vlan100", "cniVersion": "1.0.0", "bridge": "br100", "ipam": {"addresses": [{"address": "192.168.100.3/24"}], "type": "static"}, "args": {}}`
	g.Expect(desired.Digest(serverWorkload(in).pod)).To(Equal(desired.Digest(w.pod)), "the same network in other words")
	g.Expect(desired.Encoded(w.pod)).To(MatchJSON(`{
		"app": "dns", "namespace": "clusters", "name": "c1-dns",
		"infra": {"hostedcluster.densityops.com/infra": "c1", "hostedcluster.densityops.com/infra-namespace": "clusters"},
		"attachment": {"networkAttachmentDefinition": "vlan100"}, "addresses": ["192.168.100.3/24"], "placement": {},
		"network": "` + w.Network + `"}`))
	g.Expect(desired.Digest(w.pod)).To(Equal("665a8b1bcf2977b8"))
}

// The manager of commit b6c9098 digested the text of the network's configuration, not its meaning.
func TestPodsThatAnOlderManagerSealedStay(t *testing.T) {
	of := func(change func(*Child[*v1alpha1.DNSServer])) workload {
		in := aServer()
		change(&in)
		return serverWorkload(in)
	}
	derivedBy := func(inputs, former string) func(*Child[*v1alpha1.DNSServer]) {
		return func(in *Child[*v1alpha1.DNSServer]) {
			in.NAD.Annotations = map[string]string{names.AnnotationInputs: inputs, names.AnnotationFormerInputs: former}
		}
	}
	for name, c := range map[string]struct {
		change func(*Child[*v1alpha1.DNSServer])
		was    string // what the older manager took for the network
		stays  bool
	}{
		"attached to as it is":        {func(*Child[*v1alpha1.DNSServer]) {}, bridged, true},
		"derived, tuned":              {derivedBy("new", "tuned,untuned"), "tuned", true},
		"derived, not tuned":          {derivedBy("new", "tuned,untuned"), "untuned", true},
		"derived from something else": {derivedBy("new", "tuned,untuned"), "other", false},
		"of another address":          {func(in *Child[*v1alpha1.DNSServer]) { in.Server.Spec.NetworkConfig.ServerIP = "192.168.100.4" }, bridged, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			old := of(func(*Child[*v1alpha1.DNSServer]) {})
			old.Network = c.was
			was := servedOf(old)

			newer := of(c.change)
			newer.running = was.annotations
			now, _ := releases(newer, newer.dns(input.Settings{Image: "example.com/oooi:2"}))
			g.Expect(string(desired.Encoded(now.template)) == string(desired.Encoded(was.template))).To(Equal(c.stays))
			g.Expect(now.annotations[names.AnnotationSeal]).To(HavePrefix(newer.seal(now.annotations[names.AnnotationTemplate])), "sealed anew")
		})
	}
}

// A network that begins to switch forwarding off does so for the next pod. If one no longer does, its pods are replaced, because they would
// not be Ready.
func TestTuningAloneReplacesNoPod(t *testing.T) {
	const tuned = `{"plugins":[{"type":"bridge"},{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.forwarding":"0"}}]}`
	const plain = `{"plugins":[{"type":"bridge"}]}`
	for name, c := range map[string]struct {
		before, after string
		stays         bool
	}{
		"admitted":             {plain, tuned, true},
		"not admitted anymore": {tuned, plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := aServer()
			in.NAD.Annotations = map[string]string{names.AnnotationInputs: "same"}
			in.NAD.Spec.Config = c.before
			was := servedOf(serverWorkload(in))
			in.Running, in.NAD.Spec.Config = was.annotations, c.after
			now, waits := releases(serverWorkload(in), serverWorkload(in).dns(in.Settings))
			g := NewWithT(t)
			g.Expect(string(desired.Encoded(now.template)) == string(desired.Encoded(was.template))).To(Equal(c.stays))
			g.Expect(len(waits) > 0).To(Equal(c.stays), "and that is said")
		})
	}
}
