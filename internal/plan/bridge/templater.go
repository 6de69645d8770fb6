package bridge

import (
	"errors"
	"maps"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bfcfg"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// templater plans the templates of one bridge.
type templater struct {
	Input
	*Plan
	config  *dpf.DPFOperatorConfig
	keep    map[string]bool // namespace/name of those that stay or are made
	missing bool            // a pair has no template, and gets none now
	next    string          // the release that the hosted cluster does not get yet; empty if it has it
}

// holdsRelease has templates of the hosted cluster's own release stay, and none made, while it does not get the bridge's. A template that is not
// ours holds it back, too: nobody would withdraw that.
func (t *templater) holdsRelease(pairs []pair) {
	is, to := t.cluster().Spec.Release.Image, t.release()
	if is == to {
		return
	}
	for _, of := range pairs {
		if other := t.rival(dpf.TemplateOf(ClusterKey(t.Bridge), of.BFB, of.Flavor)); other != "" {
			t.Find(finding.Refuse(dpuv1.ConditionReady, dpuv1.ReasonTemplatesAmbiguous).Say("HostedCluster %s keeps release %s: DPF could go on installing that on DPUs from ConfigMap %s, which is not this bridge's; delete that", t.name(), is, other))
		}
	}
	if t.frozen() {
		b := *t.Bridge
		b.Spec.OCPReleaseImage, t.Bridge, t.next = dpuv1.ReleaseImage(is), &b, to
	}
}

// reads says whether templates can be planned at all: DPF reads them in the namespace of its one DPFOperatorConfig.
func (t *templater) reads() bool {
	var missing []finding.Finding
	if t.config, missing = t.onlyConfig(templated); t.config != nil {
		return true
	}
	t.Find(missing...)
	for _, e := range t.Input.Templates.Existing {
		t.keep[e.Namespace+"/"+e.Name] = e.Annotations[names.AnnotationTemplateRelease] == t.release()
	}
	return false
}

// onlyConfig is DPF's configuration, in whose namespace DPF and its pods are; without exactly one, a condition says so.
func (in Input) onlyConfig(condition string) (*dpf.DPFOperatorConfig, []finding.Finding) {
	config, problem := dpf.Only(in.Templates.Configs)
	switch {
	case config != nil:
		return config, nil
	case len(in.Templates.Configs) == 0:
		return nil, one(finding.Wait(condition, "DPFOperatorConfigNotFound").Say("%s; the bridge notices it", problem))
	}
	return nil, one(finding.Wait(condition, "DPFOperatorConfigNotUnique").Say("%s; the bridge notices it", problem))
}

func (t *templater) release() string { return string(t.Bridge.Spec.OCPReleaseImage) }

// template plans the one for a pair.
func (t *templater) template(of pair) {
	flavor := find(t.Input.Templates.Flavors, of.Flavor)
	switch {
	case flavor == nil:
		t.Find(finding.Wait(templated, "DPUFlavorNotFound").Say("DPUFlavor %s does not exist, or is being deleted, and %s has it in %s: create it, or use another; until then DPF has no template with it", of.Flavor, of.By, of.FlavorField))
		return
	case find(t.Input.Templates.BFBs, of.BFB) == nil:
		t.Find(finding.Wait(templated, "BFBNotFound").Say("BFB %s does not exist, or is being deleted, and %s has it in %s: create it, or use another; until then DPF has no template with it", of.BFB, of.By, of.BFBField))
		return
	}
	key := types.NamespacedName{Namespace: t.config.Namespace, Name: names.BridgeTemplate(t.Bridge.Namespace, t.Bridge.Name, of.BFB.String(), of.Flavor.String())}
	is, says := t.existing(key), dpf.TemplateOf(ClusterKey(t.Bridge), of.BFB, of.Flavor)
	good := is != nil && is.Annotations[names.AnnotationTemplateRelease] == t.release() && t.mayInstall()
	t.keep[key.String()] = good
	if other := t.rival(says); other != "" {
		t.Find(finding.Refuse(templated, dpuv1.ReasonTemplatesAmbiguous).Say("ConfigMap %s is a template for BFB %s and DPUFlavor %s too, and is not this bridge's: with two, DPF installs no DPU; delete it, and the bridge's takes its place", other, of.BFB, of.Flavor))
		return
	}
	if large := kept.Judge(templated, flavor); len(large) > 0 {
		t.Find(large...)
		return
	}
	if !t.mayRender() {
		t.missing = t.missing || !good
		return
	}
	t.render(of, key, flavor, says, is)
}

// render makes a template anew, if anything that it is made from has changed, or the template itself.
func (t *templater) render(of pair, key types.NamespacedName, flavor *dpf.DPUFlavor, says map[string]string, is *corev1.ConfigMap) {
	from := t.source(flavor)
	pullCA, problem := t.pullCA(t.Image)
	if problem != nil {
		problem.Condition = templated
		t.Find(*problem)
		return
	}
	from.PullCA = pullCA
	says[names.AnnotationTemplateRelease] = t.release()
	says[names.AnnotationTemplateInputs] = inputsOf(from)
	if is != nil && holds(is.Annotations, says) && is.Data[dpf.TemplateKey] == is.Annotations[names.AnnotationTemplateContent] && holds(is.Labels, t.labels()) {
		return
	}
	text, err := bfcfg.Template(from)
	if problem, is := errors.AsType[*bfcfg.Problem](err); is {
		t.Find(finding.Refuse(templated, problem.Reason).At(problem.Field).Say("there is no new template for BFB %s and DPUFlavor %s: %s: %s", of.BFB, of.Flavor, problem.Field, problem.Message))
		return
	} else if err != nil {
		t.Find(finding.Fail(templated, "TemplateFailed").Say("there is no new template for BFB %s and DPUFlavor %s: %v", of.BFB, of.Flavor, err))
		return
	}
	says[names.AnnotationTemplateContent] = TemplateDigest(string(text))
	t.keep[key.String()] = true
	t.Plan.Templates.Apply = append(t.Plan.Templates.Apply, accore.ConfigMap(key.Name, key.Namespace).
		WithLabels(t.labels()).WithAnnotations(says).WithData(map[string]string{dpf.TemplateKey: string(text)}))
}

func (t *templater) labels() map[string]string {
	all := labels(t.Bridge)
	all[names.LabelBridgeTemplate], all[dpf.LabelTemplate] = "true", "true"
	return all
}

// source is everything that the template of a flavor is made from.
func (t *templater) source(flavor *dpf.DPUFlavor) bfcfg.Source {
	from := bfcfg.Source{
		Ignition: t.Input.Templates.Payload.Content, MachineOS: t.Image, Flavor: flavor, MTU: t.config.Spec.Networking.HighSpeedMTU,
		ZeroTrust: t.config.IsZeroTrust(flavor),
	}
	if from.ZeroTrust {
		from.Registry, from.RegistryCA = t.registry(t.config), t.registryCA()
	}
	return from
}

// registryCA are the CAs of the bfb-registry; empty if DPF publishes none, or no certificates.
func (in Input) registryCA() string {
	text := textOf(in.Templates.RegistryCA, dpf.TrustBundleKey)
	if certificatesProblem(text) != "" {
		return ""
	}
	return text
}

// registry is the URL of DPF's bfb-registry: as it is written, with the scheme and node port of its Service where that has none, or else at a Node;
// empty if it is not known.
func (in Input) registry(config *dpf.DPFOperatorConfig) string {
	scheme, port := in.registryPort()
	address, written := nodeAddress(in.Nodes), config.RegistryURL(scheme)
	named, err := url.Parse(written)
	switch {
	case err == nil && config.RegistryLacksPort() && port != "":
		named.Host = net.JoinHostPort(named.Hostname(), port)
		return named.String()
	case written != "":
		return written
	case port == "" || address == "":
		return ""
	}
	return scheme + "://" + net.JoinHostPort(address, port)
}

// registryPort is the node port of DPF's bfb-registry, empty if it has none, and what is spoken there: DPF names the port https where its registry
// serves nothing else (doca-platform, bfbregistry, ensureService).
func (in Input) registryPort() (scheme, port string) {
	scheme = "http"
	if in.Templates.Registry == nil {
		return scheme, ""
	}
	for _, p := range in.Templates.Registry.Spec.Ports {
		if p.NodePort == 0 {
			continue
		}
		if p.Name == "https" {
			scheme = p.Name
		}
		return scheme, strconv.Itoa(int(p.NodePort))
	}
	return scheme, ""
}

// inputsOf identifies a Source, and what this version of ours makes of it.
func inputsOf(from bfcfg.Source) string {
	flavor := from.Flavor
	from.Flavor = &dpf.DPUFlavor{ObjectMeta: metav1.ObjectMeta{Namespace: flavor.Namespace, Name: flavor.Name, Annotations: flavor.Annotations}, Spec: flavor.Spec}
	return desired.Digest(map[string]any{"from": from, "version": templateVersion()})
}

// existing is the bridge's template of a name.
func (t *templater) existing(key types.NamespacedName) *corev1.ConfigMap {
	if is := find(t.Input.Templates.Existing, key); is != nil && t.Owns(is) {
		return is
	}
	return nil
}

// rival names a template that is not the bridge's and says the same.
func (t *templater) rival(says map[string]string) string {
	for _, e := range t.Input.Templates.Existing {
		if t.Input.Templates.readByDPF(&e) && !t.Owns(&e) && holds(e.Annotations, says) {
			return e.Namespace + "/" + e.Name
		}
	}
	for _, e := range t.Input.Templates.Foreign {
		if holds(e.Annotations, says) {
			return e.Namespace + "/" + e.Name
		}
	}
	return ""
}

// holds says whether a map has all of another.
func holds(has, want map[string]string) bool {
	all := maps.Clone(has)
	maps.Copy(all, want)
	return has != nil && maps.Equal(all, has)
}

// find is an object that is not being deleted.
func find[T any, P interface {
	*T
	metav1.Object
}](all []T, key types.NamespacedName) P {
	for i := range all {
		if o := P(&all[i]); o.GetNamespace() == key.Namespace && o.GetName() == key.Name && o.GetDeletionTimestamp() == nil {
			return o
		}
	}
	return nil
}

func (t *templater) mayInstall() bool { return t.Rollout() != Rolling }

func (t *templater) mayRender() bool {
	payload := t.Input.Templates.Payload
	return t.next == "" && t.Rollout() == RolledOut && payload.Content != nil && payload.Release == t.release()
}

// waits says what templates wait for, or what is wrong with the download while they need nothing of it.
func (t *templater) waits() {
	payload, pool := t.Input.Templates.Payload, t.Bridge.Namespace+"/"+t.Bridge.Name
	waiting := func(reason string) finding.Builder { return finding.Wait(templated, reason) }
	switch {
	case t.missing && t.next != "":
		t.Find(waiting("ControlPlaneProgressing").Say("the control plane does not get release %s yet, and no template is made for the one that it leaves; see the other conditions", t.next))
	case t.missing && t.Rollout() != RolledOut:
		t.Find(waiting("ControlPlaneProgressing").Say("the control plane is not at release %s yet; until it is, DPF has no template, so that it installs no DPU with another release", t.release()))
	case t.missing && payload.Reason != "":
		t.Find(waiting(payload.Reason).Say("%s", payload.Message))
	case t.missing && payload.Content == nil:
		t.Find(waiting("WaitingForIgnition").Say("the ignition of NodePool %s is not rendered by HyperShift, or not downloaded yet", pool))
	case t.missing:
		t.Find(waiting("WaitingForIgnition").Say("HyperShift has not rendered the ignition of NodePool %s for release %s yet", pool, t.release()))
	case payload.Reason != "":
		t.Find(finding.Warn(templated, payload.Reason).Say("DPF's templates are as last made, and cannot be renewed: %s", payload.Message))
	}
}
