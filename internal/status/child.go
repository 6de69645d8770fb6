package status

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
)

// child is the input of every child's verdicts.
type child struct {
	meta      metav1.Object
	before    []metav1.Condition
	instances []v1alpha1.Instance // as their daemon last reported
	ips       []v1alpha1.IPAddress
	rollouts  []observe.Rollout // of each address
	out       Outcome
	own       []verdict // conditions of its kind only, which Ready needs
	needs     []string  // conditions that its daemon writes, which Ready needs
	ofFirst   bool      // clients have addresses that only the first instance serves
	stops     string    // what ends with its last instance
}

// conditions are the controller's; the daemon writes its own (ConfigAccepted, …).
func (c child) conditions(now time.Time) []metav1.Condition {
	accepted := judged(v1alpha1.ConditionAccepted, c.out.Findings, yes(v1alpha1.ConditionAccepted, "Valid", "the spec is valid, and its references are granted"))
	var each []verdict
	for i := range c.rollouts {
		if !c.isPostponed(i) {
			each = append(each, c.ready(accepted, i, now))
		}
	}
	ready := c.together(each, now)
	return conditions(c.before, c.meta.GetGeneration(), now, slices.Concat([]verdict{accepted}, c.own, []verdict{c.progressing(ready, each), ready})...)
}

// ready: the pod of an instance has the newest template, and serves the newest spec.
func (c child) ready(accepted verdict, number int, now time.Time) verdict {
	const kind = v1alpha1.ConditionReady
	config := meta.FindStatusCondition(c.before, v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, number))
	rollout := c.rollouts[number]
	workload := rollout.Workload
	stuck, why := trouble(rollout.Pod)
	lacks := judged(v1alpha1.InstanceCondition(kind, number), c.out.Findings, verdict{})
	verdict := yes(kind, "Serving", "the pod serves the newest configuration")
	switch {
	case accepted.Status != metav1.ConditionTrue:
		verdict = no(kind, accepted.Reason, accepted.Message)
	case number > 0 && lacks.Status == metav1.ConditionFalse:
		verdict = no(kind, lacks.Reason, lacks.Message)
	case c.out.Wrote || !rollout.Exists:
		verdict = no(kind, "Progressing", "the change has just been applied")
	case rollout.Stopped:
		verdict = no(kind, "ScaledToZero", workload+" has spec.replicas: 0; set it to 1, or unpause the Infra")
	case rollout.Refused != "" && !rollout.Ready:
		verdict = no(kind, podNotReady, "no pod of "+workload+" can be created: "+rollout.Refused)
	case stuck != "":
		verdict = no(kind, stuck, why)
	case !rollout.Current && (rollout.Ready || !overdue(rollout.Pod, now)):
		verdict = no(kind, "Progressing", workload+" is being rolled out")
	case config != nil && config.Status == metav1.ConditionFalse:
		verdict = no(kind, "ConfigRefused", "the daemon serves its last good configuration: "+config.Message)
	case !rollout.Ready:
		verdict = no(kind, podNotReady, "the pod of "+workload+" is not ready"+c.saysWhy(number))
	case config == nil:
		verdict = no(kind, "Progressing", "the daemon has not reported yet")
	case config.ObservedGeneration < c.meta.GetGeneration():
		verdict = no(kind, "Progressing", fmt.Sprintf("the daemon serves generation %d of %d", config.ObservedGeneration, c.meta.GetGeneration()))
	default:
		if bad, found := firstNot(append(c.told(number), c.own...)...); found {
			verdict = no(kind, bad.Reason, bad.Message)
		}
	}
	return verdict
}

// told are those of an instance's conditions that Ready needs. An older daemon does not write all of them.
func (c child) told(number int) (all []verdict) {
	for _, need := range c.needs {
		kind := v1alpha1.InstanceCondition(need, number)
		if said := meta.FindStatusCondition(c.before, kind); said != nil {
			all = append(all, verdict{kind, said.Status, said.Reason, said.Message})
		}
	}
	return all
}

// saysWhy a pod that runs is not ready: what its daemon says, or the kubelet, or where else to look.
func (c child) saysWhy(number int) string {
	if says := v1alpha1.InstanceAt(c.instances, c.ips[number]).Message; says != "" {
		return ": " + says
	}
	if p := c.rollouts[number].Pod; p != nil && p.Warning != "" {
		return ": " + p.Warning
	}
	return "; see: " + podsOf(c.meta)
}

func podsOf(o metav1.Object) string {
	return fmt.Sprintf("kubectl -n %s describe pods -l %s=%s", o.GetNamespace(), names.LabelInstance, o.GetName())
}

func (c child) progressing(ready verdict, each []verdict) verdict {
	const kind = v1alpha1.ConditionProgressing
	switch {
	case c.out.Paused != "":
		return no(kind, "Paused", c.out.Paused)
	case finding.Worst(c.out.Findings, kind) == finding.Waiting:
		waits := judged(kind, c.out.Findings, verdict{})
		waits.Status = metav1.ConditionTrue
		return waits
	case ready.Reason == "Progressing" || ready.Reason == instanceStarting || ready.Reason == instanceDown && slices.ContainsFunc(each, isProgressing):
		return yes(kind, "RollingOut", ready.Message)
	}
	settled := judged(kind, c.out.Findings, no(kind, "Settled", fmt.Sprintf("generation %d is rolled out", c.meta.GetGeneration())))
	settled.Status = metav1.ConditionFalse // a warning here says what does not progress
	return settled
}

// Child is the controller's part of a child's status.
func Child(seen observe.Child, out Outcome, now time.Time) component.Report {
	server, written := seen.Server, seen.Component.Written(seen.Server)
	name, ip := service(seen.Service)
	own, healthy := behind(server)
	ips, rollouts := written.ServerIPs(), seen.Rollouts()
	var instances []v1alpha1.Instance
	for i, r := range rollouts {
		instances = append(instances, v1alpha1.Instance{IP: ips[i], Workload: r.Workload, Node: r.Node})
	}
	return component.Report{
		Conditions: child{server, written.Conditions, written.Instances, ips, rollouts, out, own, seen.Component.Needs, written.OfFirst, seen.Component.Stops}.conditions(now),
		Instances:  instances, Alone: len(rollouts) == 1 && !seen.Leaving && !out.Frozen,
		Workload: seen.Rollout.Workload, Service: name, ServiceIP: ip, HealthyBackends: healthy,
	}
}

// behind a proxy are its backends; other servers have none.
func behind(server component.Server) (own []verdict, healthy string) {
	proxy, is := server.(*v1alpha1.ProxyServer)
	if !is {
		return nil, ""
	}
	all := backendsOf(proxy)
	return []verdict{all.verdict()}, all.healthy()
}

// service is a Service's name and address; empty for none.
func service(s *corev1.Service) (name, ip string) {
	if s == nil {
		return "", ""
	}
	return s.Name, s.Spec.ClusterIP
}
