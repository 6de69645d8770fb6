package change

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Pod is one that is made, replaced or ended.
type Pod struct {
	Verb string `json:"verb"`
	// Workload is the StatefulSet or Deployment that has it.
	Component string `json:"component"`
	Workload  string `json:"workload"`
	// IP on the VLAN: after the change, or before it if the pod ends.
	IP string `json:"ip"`
	// Pulls: its images are pulled first, while the old pod serves.
	Pulls bool `json:"pulls,omitempty"`
}

// member is a component of a picture; without a Server, the picture does not have it.
type member struct {
	part component.Component
	workload.Child[component.Server]
}

// instances are those of the member, the first one's first.
func (m member) instances() []workload.Instance {
	return append([]workload.Instance{m.Instance}, m.Further...)
}

func memberOf(part component.Component, p Picture) member { return member{part, p.Children[part.Name]} }

// rollout is what becomes of a member, once all that waits for something else has come to pass.
type rollout struct {
	member
	// objects and findings of its last plan.
	objects  []runtime.ApplyConfiguration
	findings []finding.Finding
	// templates of the instances in the end, in order, and running those that they have now: empty if they have none.
	templates, running []string
	// order in which instances get another template.
	order []int
	// pulls are the images that are pulled first, turn says that the Infra has to have its turn.
	pulls, turn bool
}

// mostPasses is enough for two instances, each of which waits for images, its turn and the other.
const mostPasses = 16

// played plays the roll-out of a member by planning it again and again: pods start and serve at once, and images can be pulled.
func (m member) played() rollout {
	r := rollout{member: m}
	if m.Server == nil {
		return r
	}
	r.Further = slices.Clone(m.Further)
	r.Server = m.Server.DeepCopyObject().(component.Server)
	r.EachInstance(func(i *workload.Instance) {
		r.running = append(r.running, i.Running[names.AnnotationTemplate])
		i.Now.Pullers, i.Now.PullOver, i.Now.Turn, i.Now.Ending = nil, false, false, workload.EndingPod{}
	})
	r.templates = slices.Clone(r.running)
	for range mostPasses {
		p := workload.Of(m.part.Name, r.Child)
		r.objects, r.findings = p.Objects, p.Findings
		if !r.applies(p) && !r.grants(p) {
			break
		}
	}
	r.objects = slices.DeleteFunc(r.objects, isPod)
	return r
}

// isPod: pods of ours only pull images, and are gone in the end.
func isPod(o runtime.ApplyConfiguration) bool {
	_, is := o.(*accore.PodApplyConfiguration)
	return is
}

// applies has each workload run its planned template, and says whether one got another.
func (r *rollout) applies(p workload.ChildPlan) (moved bool) {
	number := 0
	r.EachInstance(func(i *workload.Instance) {
		annotations, planned := annotationsOf(p, names.InstanceWorkload(string(r.part.Name), r.Server.GetName(), number))
		if template := annotations[names.AnnotationTemplate]; planned && template != i.Running[names.AnnotationTemplate] {
			r.templates[number], moved = template, true
			r.order = append(r.order, number)
		}
		if planned && !maps.Equal(annotations, i.Running) {
			i.Running = maps.Clone(annotations)
		}
		if moved && slices.Contains(r.order, number) {
			i.Now.Serves, i.Now.Rolled, i.Bootstrap = true, true, bootstrapOf(p, names.EnvoyBootstrap(r.Server.GetName(), number))
		}
		number++
	})
	return moved
}

// grants gives the member what its plan waits for, and says whether that was anything new.
func (r *rollout) grants(p workload.ChildPlan) bool {
	now := r.Now
	switch {
	case p.AwaitsImages && !now.PullOver:
		r.pulls = true
		r.EachInstance(func(i *workload.Instance) { i.Now.PullOver = true })
	case p.AwaitsTurn && !now.Turn:
		r.turn = true
		r.EachInstance(func(i *workload.Instance) { i.Now.Turn = true })
	case p.AwaitsPeer && r.waitsForOne():
		r.EachInstance(func(i *workload.Instance) {
			i.Now.Serves, i.Now.Rolled, i.Now.Starts = i.Running != nil, i.Running != nil, false
		})
	case slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.Reason == "SecondInstanceWaits" }):
		return r.knowsSecond()
	default:
		return false
	}
	return true
}

func (r *rollout) waitsForOne() (waits bool) {
	r.EachInstance(func(i *workload.Instance) { waits = waits || i.Running != nil && !i.Now.Rolled })
	return waits
}

// knowsSecond has the first DHCP instance report that it knows of the second, which starts only then (dhcp-rules.md#lease-14).
func (r *rollout) knowsSecond() bool {
	s, is := r.Server.(*v1alpha1.DHCPServer)
	if !is || len(s.Spec.NetworkConfig.AdditionalServerIPs) == 0 {
		return false
	}
	first, second := v1alpha1.IPAddress(s.Spec.NetworkConfig.ServerIP), v1alpha1.IPAddress(s.Spec.NetworkConfig.AdditionalServerIPs[0])
	if slices.Contains(s.Status.ServesWith(first), second) {
		return false
	}
	s.Status.Instances = append([]v1alpha1.Instance{{IP: first, ServesWith: []v1alpha1.IPAddress{first, second}}}, s.Status.Instances...)
	return true
}

// Updated is the picture once somebody has had the newest pod templates applied (docs/adr/0005-released-templates.md).
func (p Picture) Updated() Picture {
	all := map[component.Name]workload.Child[component.Server]{}
	for name, child := range p.Children {
		child.Further = slices.Clone(child.Further)
		child.EachInstance(func(i *workload.Instance) {
			i.Running = maps.Clone(i.Running)
			delete(i.Running, names.AnnotationSeal)
		})
		all[name] = child
	}
	p.Children = all
	return p
}

// asItRuns is what the cluster has of it, where writes were stopped: its pods are known, and all else counts as it will be.
func (r rollout) asItRuns(then rollout) rollout {
	r.templates, r.objects = r.running, slices.Clone(then.objects)
	for number, text := range r.running {
		name := names.InstanceWorkload(string(r.part.Name), r.Server.GetName(), number)
		for i, o := range r.objects {
			r.objects[i] = withTemplate(o, name, text)
		}
	}
	return r
}

// withTemplate is a workload of this name with another template, and any other object as it is.
func withTemplate(o runtime.ApplyConfiguration, name, text string) runtime.ApplyConfiguration {
	switch o := o.(type) {
	case *acapps.StatefulSetApplyConfiguration:
		if *o.Name == name && text != "" {
			was, spec := *o, *o.Spec
			spec.Template, was.Spec = templateOf(text), &spec
			return &was
		}
	case *acapps.DeploymentApplyConfiguration:
		if *o.Name == name && text != "" {
			was, spec := *o, *o.Spec
			spec.Template, was.Spec = templateOf(text), &spec
			return &was
		}
	}
	return o
}

func templateOf(text string) *accore.PodTemplateSpecApplyConfiguration {
	t := &accore.PodTemplateSpecApplyConfiguration{}
	if json.Unmarshal([]byte(text), t) != nil {
		return nil // somebody else wrote it
	}
	return t
}

// annotationsOf are those of a planned workload.
func annotationsOf(p workload.ChildPlan, name string) (map[string]string, bool) {
	for _, o := range p.Objects {
		switch o := o.(type) {
		case *acapps.StatefulSetApplyConfiguration:
			if *o.Name == name {
				return o.Annotations, true
			}
		case *acapps.DeploymentApplyConfiguration:
			if *o.Name == name {
				return o.Annotations, true
			}
		}
	}
	return nil, false
}

func bootstrapOf(p workload.ChildPlan, name string) string {
	for _, o := range p.Objects {
		if c, is := o.(*accore.ConfigMapApplyConfiguration); is && ptr.Deref(c.Name, "") == name {
			return c.Data[workload.BootstrapKey]
		}
	}
	return ""
}

func (r rollout) template(number int) string {
	if number >= len(r.templates) {
		return ""
	}
	return r.templates[number]
}

// runs says whether an instance has a pod now.
func (r rollout) runs(number int) bool { return number < len(r.running) && r.running[number] != "" }

func (r rollout) ip(number int) string {
	if r.Server == nil {
		return ""
	}
	if ips := r.part.Written(r.Server).ServerIPs(); number < len(ips) {
		return string(ips[number])
	}
	return ""
}

// replaced are the pods that a change makes, replaces and ends, in that order.
func replaced(now, then rollout) (all []Pod) {
	app := string(now.part.Name)
	pod := func(verb string, r rollout, number int) Pod {
		server := r.Server.GetName()
		return Pod{Verb: verb, Component: app, Workload: names.InstanceWorkload(app, server, number), IP: r.ip(number)}
	}
	for _, number := range then.order {
		was, is := now.template(number), then.template(number)
		switch {
		case was == is:
		case !now.runs(number):
			all = append(all, pod(Create, then, number))
		default:
			p := pod(Replace, then, number)
			p.Pulls = then.pulls
			all = append(all, p)
		}
	}
	for number := range now.running {
		if now.runs(number) && then.template(number) == "" {
			all = append(all, pod(Delete, now, number))
		}
	}
	return all
}
