package standin

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// twoClusters are the one with the machines and the one with the nodes.
type twoClusters struct {
	management, hosted client.Client
	namespace          string // of the machines
}

// runInHosted runs one reconciler over a kind of the hosted cluster; onMachine maps a machine's change to requests.
func runInHosted(ctx context.Context, kubeconfig, namespace string, kind client.Object, onMachine handler.MapFunc, reconciler func(twoClusters, *kubernetes.Clientset) reconcile.Func) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	_, hostedConfig, err := Connect(kubeconfig)
	if err != nil {
		return err
	}
	set, err := kubernetes.NewForConfig(hostedConfig)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(hostedConfig, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: ":8081"})
	if err != nil {
		return fmt.Errorf("connecting to the hosted cluster: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	management, err := managementCluster(mgr, namespace)
	if err != nil {
		return err
	}
	clusters := twoClusters{management: management.GetClient(), hosted: mgr.GetClient(), namespace: namespace}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(machineKind)
	machines := source.Kind(management.GetCache(), client.Object(machine), handler.EnqueueRequestsFromMapFunc(onMachine))
	if err := ctrl.NewControllerManagedBy(mgr).For(kind).WatchesRawSource(machines).Complete(reconciler(clusters, set)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// managementCluster is the cluster that this pod runs in, limited to one namespace.
func managementCluster(mgr ctrl.Manager, namespace string) (cluster.Cluster, error) {
	_, cfg, err := Connect("")
	if err != nil {
		return nil, err
	}
	management, err := cluster.New(cfg, func(o *cluster.Options) {
		o.Scheme = scheme
		o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return management, mgr.Add(management)
}

// ServeMachineApprover approves certificate requests of known machines' kubelets in the hosted cluster.
func ServeMachineApprover(ctx context.Context, kubeconfig, namespace string) error {
	return runInHosted(ctx, kubeconfig, namespace, &certificatesv1.CertificateSigningRequest{}, noRequest, func(t twoClusters, set *kubernetes.Clientset) reconcile.Func {
		return func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) { return t.decide(ctx, set, r) }
	})
}

// settle is how soon a refused request is judged again: a machine may get its addresses after its kubelet first asks.
const settle = time.Second

func noRequest(context.Context, client.Object) []reconcile.Request { return nil }

func (t twoClusters) decide(ctx context.Context, set *kubernetes.Clientset, r reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := t.hosted.Get(ctx, r.NamespacedName, csr); err != nil || len(csr.Status.Conditions) > 0 {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machines, err := t.machines(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var nodes corev1.NodeList
	if err := t.hosted.List(ctx, &nodes); err != nil {
		return reconcile.Result{}, err
	}
	var nodeNames []string
	for _, n := range nodes.Items {
		nodeNames = append(nodeNames, n.Name)
	}
	if no := approve(csr, machines, nodeNames); no != nil {
		slog.Info("request waits", "csr", csr.Name, "signer", csr.Spec.SignerName, "because", no)
		return reconcile.Result{RequeueAfter: settle}, nil
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "NodeCSRApprove", Message: "This CSR was approved by the machine approver"})
	_, err = set.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{FieldManager: string(fieldOwner)})
	if err == nil {
		slog.Info("request approved", "csr", csr.Name, "signer", csr.Spec.SignerName)
	}
	return reconcile.Result{}, err
}

func (t twoClusters) machines(ctx context.Context) ([]Machine, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineKind)
	if err := t.management.List(ctx, list, client.InNamespace(t.namespace)); err != nil {
		return nil, fmt.Errorf("reading the machines: %w", err)
	}
	var all []Machine
	for _, m := range list.Items {
		all = append(all, readMachine(m))
	}
	return all, nil
}

func readMachine(u unstructured.Unstructured) Machine {
	m := Machine{Name: u.GetName(), Created: u.GetCreationTimestamp().Time}
	_, m.HasNode, _ = unstructured.NestedMap(u.Object, "status", "nodeRef")
	addresses, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
	for _, a := range addresses {
		if address, ok := a.(object)["address"].(string); ok {
			m.Addresses = append(m.Addresses, address)
		}
	}
	m.Healthy, _ = healthy(u)["status"].(string)
	return m
}

// healthy is a machine's condition NodeHealthy; nil if it has none.
func healthy(u unstructured.Unstructured) object {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(object); c["type"] == "NodeHealthy" {
			return c
		}
	}
	return nil
}

// ServeProvider stands in for Cluster API with its KubeVirt provider, virt-handler and the guest agent: it copies a guest's address to the
// status of the instance and the machine, says there whether the Node is Ready, and deletes the Node of a machine that is deleted. It reads the guest's address from its Node;
// the agent's channel would report the same.
func ServeProvider(ctx context.Context, kubeconfig, namespace string) error {
	return runInHosted(ctx, kubeconfig, namespace, &corev1.Node{}, nodeOfMachine, func(t twoClusters, _ *kubernetes.Clientset) reconcile.Func { return t.mirror })
}

func nodeOfMachine(_ context.Context, machine client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: machine.GetName()}}}
}

func (t twoClusters) mirror(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := t.hosted.Get(ctx, r.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(machineKind)
	err := t.management.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: node.Name}, machine)
	if apierrors.IsNotFound(err) {
		slog.Info("node removed with its machine", "node", node.Name)
		return reconcile.Result{}, client.IgnoreNotFound(t.hosted.Delete(ctx, node))
	}
	known := readMachine(*machine)
	if err != nil || known.HasNode && slices.Contains(known.Addresses, internalIP(node)) && known.Healthy == nodeReady(node) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, t.report(ctx, node, machine)
}

func (t twoClusters) report(ctx context.Context, node *corev1.Node, was *unstructured.Unstructured) error {
	instance := &unstructured.Unstructured{}
	instance.SetGroupVersionKind(instanceKind)
	if err := t.management.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: node.Name}, instance); err != nil {
		return fmt.Errorf("reading the machine's instance: %w", err)
	}
	w, address := Worker{Name: node.Name, MAC: firstMAC(instance)}, internalIP(node)
	if err := writeStatus(ctx, t.management, instanceKind, instance, w.instanceStatus(address)); err != nil {
		return err
	}
	machine := w.machineStatus(address)
	maps.Copy(machine, joined(was, node, time.Now()))
	return writeStatus(ctx, t.management, machineKind, instance, machine)
}

// joined is what Cluster API's machine controller adds once there is a Node: since when, and since when it is Ready, or is not.
func joined(was *unstructured.Unstructured, node *corev1.Node, at time.Time) object {
	now := at.UTC().Format(time.RFC3339)
	updated, before, _ := unstructured.NestedString(was.Object, "status", "lastUpdated")
	if !before {
		updated = now
	}
	condition := healthy(*was)
	if condition == nil || condition["status"] != nodeReady(node) {
		condition = object{"type": "NodeHealthy", "status": nodeReady(node), "lastTransitionTime": now}
	}
	return object{
		"phase": "Running", "lastUpdated": updated, "conditions": []any{condition},
		"nodeRef": object{"apiVersion": "v1", "kind": "Node", "name": node.Name, "uid": string(node.UID)},
	}
}

func nodeReady(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return string(c.Status)
		}
	}
	return string(corev1.ConditionUnknown)
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func firstMAC(instance *unstructured.Unstructured) string {
	cards, _, _ := unstructured.NestedSlice(instance.Object, "spec", "domain", "devices", "interfaces")
	for _, c := range cards {
		if mac, ok := c.(object)["macAddress"].(string); ok {
			return mac
		}
	}
	return ""
}
