package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// Rollout is that of the first instance's workload, Others are those of the other instances.
	Rollout Rollout
	Others  []Rollout
	// Leaving says that the workload or the pod of a second instance still exists, though it is no longer wanted.
	Leaving bool
	// Service on the pod network that leads to the child; nil while there is none.
	Service *corev1.Service
	// Exists says whether a UID is that of an object of its kind.
	Exists func(types.UID) bool
	Pause  Pause
}

// Rollouts are those of all instances, in order.
func (c Child) Rollouts() []Rollout { return append([]Rollout{c.Rollout}, c.Others...) }

// Child reads one child of a component and all that planning it uses.
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
	if err := seen.readNetworks(ctx, o, named.Attachment); err != nil {
		return seen, err
	}
	others := slices.DeleteFunc(named.Namespaces, func(n string) bool { return n == "" || n == server.GetNamespace() })
	if seen.Namespaces, err = o.namespaces(ctx, others); err != nil {
		return seen, err
	}
	if seen.Service, err = get[corev1.Service](ctx, o, types.NamespacedName{Namespace: key.Namespace, Name: names.Service(string(of.Name), key.Name)}); err != nil {
		return seen, err
	}
	if err := seen.readInstances(ctx, o); err != nil {
		return seen, err
	}
	if err := seen.readBootstrap(ctx, o); err != nil {
		return seen, err
	}
	if err := seen.readInfra(ctx, o); err != nil {
		return seen, err
	}
	if err := seen.readLost(ctx, o); err != nil {
		return seen, err
	}
	named.Services = slices.DeleteFunc(named.Services, func(s types.NamespacedName) bool { return !seen.Granted(s.Namespace) })
	if seen.Services, seen.EndpointSlices, err = o.reached(ctx, named); err != nil {
		return seen, err
	}
	seen.noteServices(named.Services)
	return seen, nil
}

func (c *Child) readNetworks(ctx context.Context, o *Observer, a v1alpha1.Attachment) (err error) {
	from := c.Server.GetNamespace()
	if c.NAD, err = get[nad.NetworkAttachmentDefinition](ctx, o, AttachedTo(a, from)); err != nil {
		return err
	}
	c.Further = make([]workload.Instance, len(c.Component.Written(c.Server).AdditionalServerIPs))
	for i := range c.Further {
		if c.Further[i].NAD, err = get[nad.NetworkAttachmentDefinition](ctx, o, AttachedTo(workload.InstanceAttachment(a, c.NAD, i+1), from)); err != nil {
			return err
		}
	}
	c.Unoffered, err = o.unoffered(ctx, c.NAD)
	return err
}

// note records an object that is kept in part.
func (c *Child) note(object kept.Object) {
	if _, inPart := kept.InPart(object); inPart {
		c.InPart = append(c.InPart, object)
	}
}

// noteServices notes the Services that the child names, and their EndpointSlices. Those found by an address do not count, since anybody may
// make them, nor those of the control plane, whose ports are not used.
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

// unoffered says whether a network asks for a resource that no node has. Virtual machines do not start there, but our pods, which need only
// the network, should.
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

// readInstances reads the state of each instance's workload, and what a new template of it waits for.
func (c *Child) readInstances(ctx context.Context, o *Observer) error {
	for number := range 1 + len(c.Further) {
		is, err := o.instance(ctx, c.Component, c.Server, number)
		if err != nil {
			return err
		}
		if is.workload != nil {
			c.note(is.workload)
		}
		if number == 0 {
			c.Running, c.Now, c.Rollout = is.Running, is.Now, is.Rollout
			continue
		}
		further := &c.Further[number-1]
		further.Running, further.Now = is.Running, is.Now
		c.Others = append(c.Others, is.Rollout)
	}
	return c.readLeaving(ctx, o)
}

// readLeaving looks for the workload and the pod of a second instance where none is wanted.
func (c *Child) readLeaving(ctx context.Context, o *Observer) error {
	if len(c.Further) > 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(c.Server)
	is, err := o.workload(ctx, c.Component, c.Server, types.NamespacedName{Namespace: key.Namespace, Name: names.InstanceWorkload(string(c.Component.Name), key.Name, 1)})
	if c.Leaving = is.Exists; err != nil || c.Leaving {
		return err
	}
	pods, err := o.pods(ctx, key, string(c.Component.Name), 1)
	c.Leaving = len(pods) > 0
	return err
}

// readBootstrap reads the Envoy bootstrap that each instance's last template uses, if this is a proxy.
func (c *Child) readBootstrap(ctx context.Context, o *Observer) (err error) {
	if c.Component.Name != component.Proxy {
		return nil
	}
	number := 0
	c.EachInstance(func(i *workload.Instance) {
		config, failed := get[corev1.ConfigMap](ctx, o, types.NamespacedName{Namespace: c.Server.GetNamespace(), Name: names.EnvoyBootstrap(c.Server.GetName(), number)})
		if failed == nil && config != nil && metav1.IsControlledBy(config, c.Server) {
			i.Bootstrap = config.Data[workload.BootstrapKey]
			c.note(config)
		}
		number, err = number+1, errors.Join(err, failed)
	})
	return err
}

// readInfra reads the Infra that controls the child. The child may use the Infra's control-plane namespace if the Infra itself may, and is
// paused with the Infra.
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
