package observe

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Child is one DHCPServer, DNSServer or ProxyServer as it is.
type Child struct {
	workload.Child[component.Server]
	Component component.Component
	// Found is false when there is no such object.
	Found bool
	// Rollout of its workload.
	Rollout Rollout
	// Service of its pod-network side; nil while there is none.
	Service *corev1.Service
	// Exists says whether a UID is that of an object of its kind.
	Exists func(types.UID) bool
	Pause  Pause
}

// Rollout is how far a workload is.
type Rollout struct {
	// Workload is its name.
	Workload string
	// Exists, Current: all pods are of the newest template; Ready: they serve. Stopped: it is to have no pod.
	Exists, Current, Ready, Stopped bool
	// Pod is the newest that is not Ready; nil while all are, or there is none.
	Pod *Pod
	// Refused is why there is none, in the API server's words: a quota, Pod Security.
	Refused string
}

// Child reads one child of a component and all that planning it looks at.
func (o *Observer) Child(ctx context.Context, of component.Component, key types.NamespacedName) (Child, error) {
	seen, server := Child{Component: of}, of.New()
	if err := o.Reader.Get(ctx, key, server); err != nil {
		return seen, client.IgnoreNotFound(err)
	}
	seen.Found, seen.Server = true, server
	named := workload.Refer(of.Name, server)
	seen.Exists = o.exists(ctx, of.NewList())
	var err error
	if seen.Settings, err = o.networks(ctx); err != nil {
		return seen, err
	}
	if err := seen.readNetwork(ctx, o, AttachedTo(named.Attachment, server.GetNamespace())); err != nil {
		return seen, err
	}
	others := slices.DeleteFunc(named.Namespaces, func(n string) bool { return n == "" || n == server.GetNamespace() })
	if seen.Namespaces, err = o.namespaces(ctx, others); err != nil {
		return seen, err
	}
	if seen.Service, err = get[corev1.Service](ctx, o, types.NamespacedName{Namespace: key.Namespace, Name: names.Service(string(of.Name), key.Name)}); err != nil {
		return seen, err
	}
	workload := names.Workload(string(of.Name), key.Name)
	if err := seen.readWorkload(ctx, o, types.NamespacedName{Namespace: key.Namespace, Name: workload}); err != nil {
		return seen, err
	}
	if err := seen.readRollout(ctx, o); err != nil {
		return seen, err
	}
	seen.Rollout.Workload = workload
	if seen.Rollout.Exists && (!seen.Rollout.Ready || !seen.Rollout.Current) {
		if seen.Rollout.Pod, err = o.unready(ctx, key, string(of.Name)); err != nil {
			return seen, err
		}
	}
	if err := seen.readInfra(ctx, o); err != nil {
		return seen, err
	}
	named.Services = slices.DeleteFunc(named.Services, func(s types.NamespacedName) bool { return !seen.Granted(s.Namespace) })
	if seen.Services, seen.EndpointSlices, err = o.reached(ctx, named); err != nil {
		return seen, err
	}
	seen.noteServices(named.Services)
	return seen, nil
}

// readNetwork that the child attaches to.
func (c *Child) readNetwork(ctx context.Context, o *Observer, at types.NamespacedName) (err error) {
	if c.NAD, err = get[nad.NetworkAttachmentDefinition](ctx, o, at); err != nil {
		return err
	}
	c.Unoffered, err = o.unoffered(ctx, c.NAD)
	return err
}

// note an object if it is kept in part.
func (c *Child) note(object kept.Object) {
	if _, inPart := kept.InPart(object); inPart {
		c.InPart = append(c.InPart, object)
	}
}

// noteServices that the child names, and their EndpointSlices. Those of an address that it names anybody may make, and of those of its
// control plane the ports are not looked at.
func (c *Child) noteServices(named []types.NamespacedName) {
	counts := func(namespace, name string) bool {
		return namespace != c.AllowedNamespace && slices.Contains(named, types.NamespacedName{Namespace: namespace, Name: name})
	}
	for i := range c.Services {
		if s := &c.Services[i]; counts(s.Namespace, s.Name) {
			c.note(s)
		}
	}
	for i := range c.EndpointSlices {
		if s := &c.EndpointSlices[i]; counts(s.Namespace, s.Labels[discoveryv1.LabelServiceName]) {
			c.note(s)
		}
	}
}

// AttachedTo is the NetworkAttachmentDefinition that an attachment names.
func AttachedTo(a v1alpha1.Attachment, from string) types.NamespacedName {
	key := types.NamespacedName{Namespace: string(a.NetworkAttachmentNamespace), Name: string(a.NetworkAttachmentDefinition)}
	if key.Namespace == "" {
		key.Namespace = from
	}
	return key
}

// unoffered says whether a network asks for a resource that no node has. Virtual machines do not start there; our pods, which need the
// network only, are to.
func (o *Observer) unoffered(ctx context.Context, network *nad.NetworkAttachmentDefinition) (bool, error) {
	if network == nil || network.Resource() == "" {
		return false, nil
	}
	nodes := &corev1.NodeList{}
	if err := o.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("reading from Nodes who has %s: %w", network.Resource(), err)
	}
	return !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		has := n.Status.Allocatable[corev1.ResourceName(network.Resource())]
		return !has.IsZero()
	}), nil
}

// readWorkload reads the child's StatefulSet or, for a proxy, Deployment.
func (c *Child) readWorkload(ctx context.Context, o *Observer, at types.NamespacedName) error {
	if c.Component.Workload == component.Deployment {
		d, err := get[appsv1.Deployment](ctx, o, at)
		if err == nil && d != nil && metav1.IsControlledBy(d, c.Server) {
			c.Running, c.Rollout = d.Annotations, ofDeployment(d)
			c.note(d)
		}
		return err
	}
	s, err := get[appsv1.StatefulSet](ctx, o, at)
	if err == nil && s != nil && metav1.IsControlledBy(s, c.Server) {
		c.Running, c.Rollout = s.Annotations, ofStatefulSet(s)
		c.note(s)
		if s.Status.Replicas == 0 && !c.Rollout.Stopped { // a Deployment says it in a condition, a StatefulSet in an event
			c.Rollout.Refused = o.lastWarning(ctx, s)
		}
	}
	return err
}

// readRollout reads what a new template waits for, and the bootstrap that the last one reads.
func (c *Child) readRollout(ctx context.Context, o *Observer) error {
	c.Now.Serves, c.Now.Rolled = c.Rollout.Ready, c.Rollout.Ready && c.Rollout.Current
	at := c.Server.GetNamespace()
	pods := &corev1.PodList{}
	if err := o.Reader.List(ctx, pods, client.InNamespace(at), client.MatchingLabels{names.LabelPulls: c.Server.GetName(), names.LabelApp: string(c.Component.Name)}); err != nil {
		return fmt.Errorf("listing pods that pull images: %w", err)
	}
	c.Now.Pullers = pods.Items
	c.Now.PullOver = slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return o.Now().Sub(p.CreationTimestamp.Time) > workload.LongestPull })
	if c.Component.Name != component.Proxy {
		return nil
	}
	config, err := get[corev1.ConfigMap](ctx, o, types.NamespacedName{Namespace: at, Name: names.EnvoyBootstrap(c.Server.GetName())})
	if err == nil && config != nil && metav1.IsControlledBy(config, c.Server) {
		c.Bootstrap = config.Data[workload.BootstrapKey]
		c.note(config)
	}
	return err
}

// Workload names the workload of a child.
type Workload struct {
	Kind string
	types.NamespacedName
}

// Served says whether the template of a workload has served; one that is gone is nobody's to wait for.
func (o *Observer) Served(ctx context.Context, w Workload) bool {
	var live client.Object = &appsv1.StatefulSet{}
	if w.Kind == component.Deployment {
		live = &appsv1.Deployment{}
	}
	err := o.Reader.Get(ctx, w.NamespacedName, live)
	return err != nil || workload.Served(live.GetAnnotations())
}

// ofDeployment: a Deployment's generation moves with its annotations too (kubernetes, pkg/registry/apps/deployment/strategy.go), so
// that a template which has served is current while nobody has looked at what we noted beside it.
func ofDeployment(d *appsv1.Deployment) Rollout {
	current := (d.Status.ObservedGeneration == d.Generation || workload.Served(d.Annotations)) && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1
	r := Rollout{Exists: true, Current: current, Ready: d.Status.ReadyReplicas > 0, Stopped: ptr.Deref(d.Spec.Replicas, 1) == 0}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			r.Refused = c.Reason + ": " + c.Message
		}
	}
	return r
}

func ofStatefulSet(s *appsv1.StatefulSet) Rollout {
	current := s.Status.ObservedGeneration == s.Generation && s.Status.UpdatedReplicas == 1 && s.Status.CurrentRevision == s.Status.UpdateRevision
	return Rollout{Exists: true, Current: current, Ready: s.Status.ReadyReplicas > 0, Stopped: ptr.Deref(s.Spec.Replicas, 1) == 0}
}

// readInfra reads the Infra that controls the child: it lends its control plane's namespace, if it may use that itself,
// and its pause holds for its children.
func (c *Child) readInfra(ctx context.Context, o *Observer) error {
	c.Pause = o.pause(c.Server.GetAnnotations(), nil)
	ref := metav1.GetControllerOf(c.Server)
	if ref == nil || ref.Kind != "Infra" {
		return nil
	}
	infra := &v1alpha1.Infra{}
	err := o.Reader.Get(ctx, types.NamespacedName{Namespace: c.Server.GetNamespace(), Name: ref.Name}, infra)
	if apierrors.IsNotFound(err) || err == nil && infra.UID != ref.UID {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Infra %s/%s: %w", c.Server.GetNamespace(), ref.Name, err)
	}
	seen := Infra{Input: input.Input{Settings: o.Settings, Infra: infra}}
	if err := o.references(ctx, &seen); err != nil {
		return err
	}
	if err := o.owner(ctx, &seen); err != nil {
		return err
	}
	c.Infra = infra
	if len(permission.Check(seen.Input)) == 0 {
		c.AllowedNamespace = seen.ControlPlaneNamespace()
	}
	if !c.Pause.Active() {
		c.Pause = o.pause(infra.Annotations, permission.HostedCluster(seen.Input))
	}
	return nil
}
