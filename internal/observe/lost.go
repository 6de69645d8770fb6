package observe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// A pod is left alone for settles after it became ready, so that an address is moved four times a minute at most: until it is lost takes four seconds,
// too. One that never was is left alone for untilReady, as while its images are pulled.
const (
	settles    = 10 * time.Second
	untilReady = time.Minute
)

// readLost reads what decides whether a proxy's pods are lost: who looks at them from the VLAN, and whether their nodes report.
func (c *Child) readLost(ctx context.Context, o *Observer) (err error) {
	if c.Component.Name != component.Proxy {
		return nil
	}
	if err := c.readLookouts(ctx, o); err != nil {
		return err
	}
	key, number := client.ObjectKeyFromObject(c.Server), 0
	c.EachInstance(func(i *workload.Instance) {
		if err == nil {
			err = o.readBound(ctx, i, key, number)
		}
		number++
	})
	return err
}

func (c *Child) readLookouts(ctx context.Context, o *Observer) error {
	if c.Child.Infra == nil {
		return nil
	}
	dns, err := get[v1alpha1.DNSServer](ctx, o, types.NamespacedName{Namespace: c.Server.GetNamespace(), Name: names.DNSServer(c.Child.Infra.Name)})
	if err != nil || dns == nil || !metav1.IsControlledBy(dns, c.Child.Infra) {
		return err
	}
	for number, ip := range dns.Spec.NetworkConfig.ServerIPs() {
		l := workload.Lookout{Said: v1alpha1.InstanceAt(dns.Status.Instances, ip)}
		if l.Node, err = o.reports(ctx, client.ObjectKeyFromObject(dns), number); err != nil {
			return err
		}
		c.Lookouts = append(c.Lookouts, l)
	}
	return nil
}

// reports is the node of a DNS instance's pod, if it has one, and that node reports.
func (o *Observer) reports(ctx context.Context, dns types.NamespacedName, number int) (string, error) {
	pods, err := o.pods(ctx, dns, names.DNS, number)
	for _, p := range pods {
		node, err := get[corev1.Node](ctx, o, types.NamespacedName{Name: p.Spec.NodeName})
		if err != nil {
			return "", err
		}
		if node != nil && kubelet.NodeReady(node).Status == corev1.ConditionTrue {
			return node.Name, nil
		}
	}
	return "", err
}

// readBound reads the pods of one of a proxy's instances that are on a node: those that are not to end, and one that may not be able to.
func (o *Observer) readBound(ctx context.Context, to *workload.Instance, proxy types.NamespacedName, number int) error {
	pods, err := o.pods(ctx, proxy, names.Proxy, number)
	for _, p := range pods {
		owner := metav1.GetControllerOf(&p)
		if p.Spec.NodeName == "" || owner == nil || owner.Kind != "ReplicaSet" {
			continue
		}
		node, err := get[corev1.Node](ctx, o, types.NamespacedName{Name: p.Spec.NodeName})
		if err != nil {
			return err
		}
		ready := corev1.NodeCondition{}
		if node != nil {
			ready = kubelet.NodeReady(node)
		}
		silent := ready.Status == corev1.ConditionUnknown
		switch {
		case p.DeletionTimestamp == nil:
			to.Pods = append(to.Pods, workload.RunningPod{
				NamespacedName: client.ObjectKeyFromObject(&p), UID: p.UID, Settled: settled(&p, o.Now()),
				Stranded: silent && o.Now().Sub(ready.LastTransitionTime.Time) >= workload.UnreachableSeconds*time.Second,
			})
		case silent || p.Labels[names.LabelLost] != "":
			to.Now.Ending = workload.EndingPod{Name: p.Name, Node: p.Spec.NodeName}
		}
	}
	return err
}

func settled(p *corev1.Pod, now time.Time) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) >= settles {
			return true
		}
	}
	return now.Sub(p.CreationTimestamp.Time) >= untilReady
}
