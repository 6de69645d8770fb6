package plan

import (
	"testing"

	. "github.com/onsi/gomega"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

type podTemplate = accore.PodTemplateSpecApplyConfiguration

const bridged = `{"type":"bridge","bridge":"br100","ipam":{"type":"static","addresses":[{"address":"192.168.100.3/24"}]}}`

// aServer of DNS.
func aServer() Child[*v1alpha1.DNSServer] {
	in := Child[*v1alpha1.DNSServer]{Settings: Settings{Image: "example.com/oooi:1"}, Server: &v1alpha1.DNSServer{}}
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
	return workloadOf(in, names.DNS, "DNSServer", n.Attachment, within(string(n.ServerIP), string(n.SecondaryNetworkCIDR)))
}

// Whatever another manager makes of the same decisions, the pods stay, and status says what waits and what releases it.
func TestATemplateStaysWhenOnlyTheManagerIsNewer(t *testing.T) {
	in := aServer()
	w := serverWorkload(in)
	was, waits := w.release(w.dns(in.Settings))
	NewWithT(t).Expect(waits).To(BeEmpty())
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
			now, waits := newer.release(newest)
			g.Expect(encoded(now.template)).To(MatchJSON(encoded(was.template)))
			g.Expect(now.annotations).To(Equal(was.annotations))
			g.Expect(waits).To(ConsistOf(And(HaveField("Reason", "NewerTemplateWaits"),
				HaveField("Message", ContainSubstring("-l app.kubernetes.io/instance=c1-dns,app=dns "+names.AnnotationReleased+"-")))))

			back, waits := newer.release(newer.dns(in.Settings))
			g.Expect(back).To(Equal(was), "the older manager is back")
			g.Expect(waits).To(BeEmpty())
		})
	}
}

// What a manager did not write, it does not keep: the newest template is released.
func TestATemplateThatWasTamperedWithIsNotKept(t *testing.T) {
	in := aServer()
	was, _ := serverWorkload(in).release(serverWorkload(in).dns(in.Settings))
	for name, running := range map[string]map[string]string{
		"there is no workload":       nil,
		"it says nothing":            {},
		"its seal was taken off":     {names.AnnotationTemplate: was.annotations[names.AnnotationTemplate]},
		"its template was taken off": {names.AnnotationReleased: was.annotations[names.AnnotationReleased]},
		"its template was edited":    {names.AnnotationReleased: was.annotations[names.AnnotationReleased], names.AnnotationTemplate: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := serverWorkload(in)
			w.running = running
			newest := w.dns(Settings{Image: "example.com/oooi:2"})
			now, waits := w.release(newest)
			g.Expect(now.template).To(Equal(newest))
			g.Expect(waits).To(BeEmpty())
		})
	}
}

// A derived network is the manager's work too: what counts is what it was derived from.
func TestANetworkThatOnlyANewerManagerChangesReplacesNoPod(t *testing.T) {
	const other = `{"type":"bridge","bridge":"br200"}`
	for name, c := range map[string]struct {
		before, after string // what it was derived from; empty where it was not
		replaced      bool
	}{
		"derived from the same": {"a", "a", false},
		"derived from another":  {"a", "b", true},
		"written by the user":   {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := aServer()
			in.NAD.Annotations = map[string]string{names.AnnotationInputs: c.before}
			was, _ := serverWorkload(in).release(serverWorkload(in).dns(in.Settings))
			in.Running, in.NAD.Annotations[names.AnnotationInputs], in.NAD.Spec.Config = was.annotations, c.after, other
			now, _ := serverWorkload(in).release(serverWorkload(in).dns(in.Settings))
			NewWithT(t).Expect(string(encoded(now.template)) != string(encoded(was.template))).To(Equal(c.replaced))
		})
	}
}

// The digest of a pod's inputs is compared with that of an older manager: when it changes without them, every pod of every
// cluster is replaced by the next manager. New inputs are left out of it while they are empty.
func TestOneDecisionHasOneDigestInEveryVersion(t *testing.T) {
	g := NewWithT(t)
	w := serverWorkload(aServer())
	g.Expect(encoded(w.pod)).To(MatchJSON(`{
		"app": "dns", "namespace": "clusters", "name": "c1-dns",
		"infra": {"hostedcluster.densityops.com/infra": "c1", "hostedcluster.densityops.com/infra-namespace": "clusters"},
		"attachment": {"networkAttachmentDefinition": "vlan100"}, "addresses": ["192.168.100.3/24"], "placement": {},
		"network": ` + string(encoded(bridged)) + `}`))
	g.Expect(digest(w.pod)).To(Equal("da0e4c54f44f508d"))
}
