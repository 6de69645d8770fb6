package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
)

// child is what the verdicts of every child look at.
type child struct {
	meta    metav1.Object
	before  []metav1.Condition
	rollout observe.Rollout
	out     Outcome
}

// conditions are the controller's; the daemon's own (ConfigAccepted, …) it writes itself.
func (c child) conditions(now time.Time) []metav1.Condition {
	accepted := judged(v1alpha1.ConditionAccepted, c.out.Findings, yes(v1alpha1.ConditionAccepted, "Valid", "the spec is valid and permitted"))
	ready := c.ready(accepted)
	return conditions(c.before, c.meta.GetGeneration(), now, accepted, c.progressing(ready), ready)
}

// ready: the pod serves, of the newest template, with the newest spec.
func (c child) ready(accepted verdict) verdict {
	const kind = v1alpha1.ConditionReady
	config := meta.FindStatusCondition(c.before, v1alpha1.ConditionConfigAccepted)
	workload := c.rollout.Workload
	verdict := yes(kind, "Serving", "the pod serves the newest configuration")
	switch {
	case accepted.Status != metav1.ConditionTrue:
		verdict = no(kind, accepted.Reason, accepted.Message)
	case c.out.Wrote || !c.rollout.Exists:
		verdict = no(kind, "Progressing", "the change has just been applied")
	case !c.rollout.Current:
		verdict = no(kind, "Progressing", workload+" is being rolled out")
	case config != nil && config.Status == metav1.ConditionFalse:
		verdict = no(kind, "ConfigRefused", "the daemon serves its last good configuration: "+config.Message)
	case !c.rollout.Ready:
		verdict = no(kind, "PodNotReady", "the pod of "+workload+" is not ready; see: "+podsOf(c.meta))
	case config == nil:
		verdict = no(kind, "Progressing", "the daemon has not reported yet")
	case config.ObservedGeneration < c.meta.GetGeneration():
		verdict = no(kind, "Progressing", fmt.Sprintf("the daemon serves generation %d of %d", config.ObservedGeneration, c.meta.GetGeneration()))
	}
	return judged(kind, c.out.Findings, verdict)
}

func podsOf(o metav1.Object) string {
	return fmt.Sprintf("kubectl -n %s describe pods -l %s=%s", o.GetNamespace(), names.LabelInstance, o.GetName())
}

func (c child) progressing(ready verdict) verdict {
	const kind = v1alpha1.ConditionProgressing
	switch {
	case c.out.Paused != "":
		return no(kind, "Paused", c.out.Paused)
	case ready.Reason == "Progressing":
		return yes(kind, "RollingOut", ready.Message)
	}
	settled := judged(kind, c.out.Findings, no(kind, "Settled", fmt.Sprintf("generation %d is rolled out", c.meta.GetGeneration())))
	settled.Status = metav1.ConditionFalse // a note here says what does not move
	return settled
}

func instances(ip v1alpha1.IPAddress, workload string) []v1alpha1.Instance {
	return []v1alpha1.Instance{{IP: ip, Workload: workload}}
}

// DHCP is the controller's part of a DHCPServer's status.
func DHCP(seen observe.Child[*v1alpha1.DHCPServer], out Outcome, now time.Time) v1alpha1.DHCPServerStatus {
	s := seen.Server
	return v1alpha1.DHCPServerStatus{
		Conditions: child{s, s.Status.Conditions, seen.Rollout, out}.conditions(now),
		Instances:  instances(v1alpha1.IPAddress(s.Spec.NetworkConfig.ServerIP), seen.Rollout.Workload), ObservedGeneration: s.Generation,
	}
}

// DNS is the controller's part of a DNSServer's status.
func DNS(seen observe.Child[*v1alpha1.DNSServer], out Outcome, now time.Time) v1alpha1.DNSServerStatus {
	s := seen.Server
	name, ip := service(seen.Service)
	return v1alpha1.DNSServerStatus{
		Conditions: child{s, s.Status.Conditions, seen.Rollout, out}.conditions(now),
		Instances:  instances(s.Spec.NetworkConfig.ServerIP, seen.Rollout.Workload), ObservedGeneration: s.Generation,
		DeploymentName: seen.Rollout.Workload, ServiceName: name, ServiceClusterIP: ip,
	}
}

// Proxy is the controller's part of a ProxyServer's status.
func Proxy(seen observe.Child[*v1alpha1.ProxyServer], out Outcome, now time.Time) v1alpha1.ProxyServerStatus {
	s := seen.Server
	name, ip := service(seen.Service)
	return v1alpha1.ProxyServerStatus{
		Conditions: child{s, s.Status.Conditions, seen.Rollout, out}.conditions(now),
		Instances:  instances(s.Spec.NetworkConfig.ServerIP, seen.Rollout.Workload), ObservedGeneration: s.Generation,
		DeploymentName: seen.Rollout.Workload, ConfigMapName: names.EnvoyBootstrap(s.Name), ServiceName: name, ServiceIP: ip,
		BackendCount: int32(len(s.Spec.Backends)),
	}
}

// service is a Service's name and address; empty while there is none.
func service(s *corev1.Service) (name, ip string) {
	if s == nil {
		return "", ""
	}
	return s.Name, s.Spec.ClusterIP
}
