package standin

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lab is the management cluster as this package uses it: a client, and where progress is written.
type Lab struct {
	client  client.WithWatch
	out     io.Writer
	started time.Time
}

// NewLab writes progress to out, with the time since now.
func NewLab(c client.WithWatch, out io.Writer) *Lab {
	return &Lab{client: c, out: out, started: time.Now()}
}

func (l *Lab) say(format string, args ...any) {
	fmt.Fprintf(l.out, "[%6.1fs] %s\n", time.Since(l.started).Seconds(), fmt.Sprintf(format, args...))
}

// Apply brings a hosted control plane up, or changes it to what c says, and returns when it serves. It can be repeated.
func (l *Lab) Apply(ctx context.Context, c Cluster) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := l.install(ctx); err != nil {
		return err
	}
	if err := l.fillIn(ctx, &c); err != nil {
		return err
	}
	if err := apply(ctx, l.client, namespace(HostedClusterNamespace, nil), namespace(c.Namespace(), controlPlaneNamespaceLabels)); err != nil {
		return err
	}
	if err := apply(ctx, l.client, c.ordered()...); err != nil { // if this is refused, nothing has happened yet
		return err
	}
	return l.bringUp(ctx, c)
}

// bringUp starts a control plane and returns when it serves.
func (l *Lab) bringUp(ctx context.Context, c Cluster) error {
	nodePorts, err := l.publish(ctx, &c)
	if err != nil {
		return err
	}
	cfg, err := l.configure(ctx, c, nodePorts)
	if err != nil {
		return err
	}
	if err := l.run(ctx, c, cfg); err != nil {
		return err
	}
	if err := l.report(ctx, c, nodePorts, false); err != nil {
		return err
	}
	if err := l.awaitWorkloads(ctx, c); err != nil {
		return err
	}
	if err := l.report(ctx, c, nodePorts, true); err != nil {
		return err
	}
	l.say("hosted cluster %s serves: API %s, ignition %s", c.Name, hostPort(c.host(kubeAPIServer), c.port(kubeAPIServer, nodePorts)), c.ignitionEndpoint(nodePorts))
	return nil
}

// install creates the CRDs, and returns when the API server serves them.
func (l *Lab) install(ctx context.Context) error {
	definitions, err := crds(ctx)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, d := range definitions {
		want[d.Name] = true
		if err := apply(ctx, l.client, d); err != nil {
			return err
		}
	}
	established := func(o client.Object) bool {
		for _, c := range o.(*apiextensionsv1.CustomResourceDefinition).Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	}
	return await(ctx, l.client, &apiextensionsv1.CustomResourceDefinitionList{}, nil, want, established, func(name string) { l.say("kind %s known", name) })
}

// fillIn sets a node's address for node ports without one.
func (l *Lab) fillIn(ctx context.Context, c *Cluster) error {
	if c.NodeAddress != "" {
		return nil
	}
	var nodes corev1.NodeList
	if err := l.client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("reading the nodes: %w", err)
	}
	for i := range nodes.Items {
		c.NodeAddress = internalIP(&nodes.Items[i])
	}
	return nil
}

// controlPlaneNamespaceLabels are those of HyperShift's reconciler; the namespace enforces Pod Security restricted.
var controlPlaneNamespaceLabels = map[string]string{
	controlPlaneLabel:                                "true",
	"pod-security.kubernetes.io/enforce":             "restricted",
	"pod-security.kubernetes.io/audit":               "restricted",
	"pod-security.kubernetes.io/warn":                "restricted",
	"security.openshift.io/scc.podSecurityLabelSync": "false",
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// publish creates what workers reach. It plays two controllers that the lab does not have: the load balancer, unless LBAddress is empty,
// and the ingress that admits Routes. It returns the assigned node ports.
func (l *Lab) publish(ctx context.Context, c *Cluster) (map[string]int32, error) {
	if err := apply(ctx, l.client, c.published()...); err != nil {
		return nil, err
	}
	for _, name := range c.balanced() {
		if err := l.balance(ctx, c, name); err != nil {
			return nil, err
		}
	}
	for _, r := range c.routes() {
		if err := applyStatus(ctx, l.client, r, &routev1.RouteStatus{Ingress: admitted(r)}); err != nil {
			return nil, err
		}
	}
	var services corev1.ServiceList
	if err := l.client.List(ctx, &services, client.InNamespace(c.Namespace())); err != nil {
		return nil, fmt.Errorf("reading the node ports: %w", err)
	}
	nodePorts := map[string]int32{}
	for _, s := range services.Items {
		nodePorts[s.Name] = s.Spec.Ports[0].NodePort
	}
	return nodePorts, nil
}

// balance gives a Service the load balancer's address, or waits for the one that a real load balancer assigns.
func (l *Lab) balance(ctx context.Context, c *Cluster, name string) error {
	if c.LBAddress != "" {
		status := &corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: c.LBAddress, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}}}
		return applyStatus(ctx, l.client, &corev1.Service{ObjectMeta: c.meta(name)}, status)
	}
	given := func(o client.Object) bool {
		for _, ingress := range o.(*corev1.Service).Status.LoadBalancer.Ingress {
			c.LBAddress = ingress.IP
		}
		return c.LBAddress != ""
	}
	here := []client.ListOption{client.InNamespace(c.Namespace())}
	return await(ctx, l.client, &corev1.ServiceList{}, here, map[string]bool{name: true}, given, func(name string) { l.say("%s has the address %s", name, c.LBAddress) })
}

// configure writes every Secret and ConfigMap, and keeps existing keys.
func (l *Lab) configure(ctx context.Context, c Cluster, nodePorts map[string]int32) (config, error) {
	existing, err := l.existing(ctx, c)
	if err != nil {
		return config{}, err
	}
	cfg, err := c.configure(existing, nodePorts, l.started)
	if err != nil {
		return config{}, err
	}
	secrets, configMaps := cfg.objects(c)
	for _, s := range secrets {
		if err := apply(ctx, l.client, s); err != nil {
			return config{}, err
		}
	}
	for _, m := range configMaps {
		if err := apply(ctx, l.client, m); err != nil {
			return config{}, err
		}
	}
	return cfg, l.applyTokens(ctx, c, cfg, existing, nodePorts)
}

// applyTokens writes what new workers need to join: the token and its payload, and the admin kubeconfig beside the HostedCluster.
func (l *Lab) applyTokens(ctx context.Context, c Cluster, cfg config, existing map[string]files, nodePorts map[string]int32) error {
	content, err := c.payload(cfg, nodePorts)
	if err != nil {
		return fmt.Errorf("writing the workers' ignition config: %w", err)
	}
	token := c.tokenSecret(existing["token-"+c.nodePool()+"-"+c.configVersion()], content)
	userData, err := c.userData(c.ignitionEndpoint(nodePorts), token.Data["token"], cfg.secrets[ignitionCA.secret][ignitionCA.cert])
	if err != nil {
		return err
	}
	return apply(ctx, l.client, token,
		&corev1.Secret{ObjectMeta: c.meta(c.userDataSecret()), Data: map[string][]byte{"value": userData}},
		c.kubeconfigBeside(cfg.secrets["admin-kubeconfig"]))
}

func (l *Lab) existing(ctx context.Context, c Cluster) (map[string]files, error) {
	var secrets corev1.SecretList
	if err := l.client.List(ctx, &secrets, client.InNamespace(c.Namespace())); err != nil {
		return nil, fmt.Errorf("reading the keys of %s: %w", c.Namespace(), err)
	}
	existing := map[string]files{}
	for _, s := range secrets.Items {
		existing[s.Name] = s.Data
	}
	return existing, nil
}

func (l *Lab) run(ctx context.Context, c Cluster, cfg config) error {
	if err := apply(ctx, l.client, c.accounts()...); err != nil {
		return err
	}
	return apply(ctx, l.client, c.workloads(cfg.all())...)
}

// report writes the statuses that HyperShift's operators would. A cluster that was available stays so while it changes.
func (l *Lab) report(ctx context.Context, c Cluster, nodePorts map[string]int32, available bool) error {
	now := &hyperv1.HostedCluster{}
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(c.hostedCluster()), now); err != nil {
		return fmt.Errorf("reading the HostedCluster: %w", err)
	}
	available = available || meta.IsStatusConditionTrue(now.Status.Conditions, string(hyperv1.HostedClusterAvailable))
	status := c.status(nodePorts, available, now.Status.Conditions)
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = now.Generation
	}
	if err := applyStatus(ctx, l.client, c.hostedCluster(), &status); err != nil {
		return err
	}
	return applyStatus(ctx, l.client, c.hostedControlPlane(), &hyperv1.HostedControlPlaneStatus{
		Ready: available, Initialized: true, Conditions: status.Conditions,
		ControlPlaneEndpoint: status.ControlPlaneEndpoint, OAuthCallbackURLTemplate: status.OAuthCallbackURLTemplate,
		KubeConfig: &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"},
	})
}

func (l *Lab) awaitWorkloads(ctx context.Context, c Cluster) error {
	tell := func(name string) { l.say("%s serves", name) }
	here := []client.ListOption{client.InNamespace(c.Namespace())}
	if err := await(ctx, l.client, &appsv1.StatefulSetList{}, here, map[string]bool{"etcd": true}, rolledOut, tell); err != nil {
		return err
	}
	want := map[string]bool{}
	for _, p := range c.deployments() {
		want[p.name] = true
	}
	return await(ctx, l.client, &appsv1.DeploymentList{}, here, want, rolledOut, tell)
}

// rolledOut says whether the running pods are those of the newest template, all of them and no others.
func rolledOut(o client.Object) bool {
	switch w := o.(type) {
	case *appsv1.Deployment:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.UpdatedReplicas == *w.Spec.Replicas &&
			w.Status.AvailableReplicas == *w.Spec.Replicas && w.Status.Replicas == *w.Spec.Replicas
	case *appsv1.StatefulSet:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.UpdatedReplicas == *w.Spec.Replicas && w.Status.ReadyReplicas == *w.Spec.Replicas
	}
	return false
}

// Delete removes a hosted cluster and returns when its namespace is gone.
func (l *Lab) Delete(ctx context.Context, c Cluster) error {
	gone := namespace(c.Namespace(), nil)
	for _, o := range []client.Object{c.hostedCluster(), c.pool(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.adminKubeconfig(), Namespace: HostedClusterNamespace}}, gone} {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("removing %T %s: %w", o, o.GetName(), err)
		}
	}
	if err := l.awaitGone(ctx, gone); err != nil {
		return err
	}
	return l.letGo(ctx, c)
}

func (l *Lab) awaitGone(ctx context.Context, ns *corev1.Namespace) error {
	for {
		w, err := l.client.Watch(ctx, &corev1.NamespaceList{}, client.MatchingFields{"metadata.name": ns.Name})
		if err != nil {
			return fmt.Errorf("waiting for namespace %s to go: %w", ns.Name, err)
		}
		err = l.client.Get(ctx, client.ObjectKeyFromObject(ns), &corev1.Namespace{})
		for err == nil {
			event, open := <-w.ResultChan()
			if !open {
				break
			}
			if event.Type == "DELETED" {
				err = apierrors.NewNotFound(corev1.Resource("namespaces"), ns.Name)
			}
		}
		w.Stop()
		if apierrors.IsNotFound(err) {
			l.say("namespace %s is gone", ns.Name)
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for namespace %s to go: %w", ns.Name, err)
		}
	}
}

func names(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
