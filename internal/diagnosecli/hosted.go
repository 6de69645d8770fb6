package diagnosecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/step"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// mostTunnels is how many Nodes are asked through konnectivity: each is a request that may hang.
const mostTunnels = 20

// hosted reads the hosted cluster with its kubeconfig.
func (r reader) hosted(hc step.Read[*hyperv1.HostedCluster], machines []diagnose.Machine) (seen step.Read[diagnose.Hosted]) {
	switch {
	case hc.Unread != "":
		seen.Unread = "its HostedCluster is not read: " + hc.Unread
	case hc.Is == nil:
		seen.Unread = fmt.Sprintf("HostedCluster %s does not exist", r.cluster)
	case hc.Is.Status.KubeConfig == nil:
		seen.Unread = fmt.Sprintf("HostedCluster %s has no kubeconfig yet", r.cluster)
	default:
		at := types.NamespacedName{Namespace: r.cluster.Namespace, Name: hc.Is.Status.KubeConfig.Name}
		secret := object[corev1.Secret](r, at, "secrets")
		if secret.Is == nil {
			seen.Unread = cmp.Or(secret.Unread, "Secret "+at.String()+" with its kubeconfig does not exist")
			return seen
		}
		return r.visit(secret.Is, machines)
	}
	return seen
}

func (r reader) visit(secret *corev1.Secret, machines []diagnose.Machine) (seen step.Read[diagnose.Hosted]) {
	access, refusal := kubeconfig.Sanitise(secret.Data[kubeconfig.SecretKey])
	if refusal != nil {
		seen.Unread = fmt.Sprintf("the kubeconfig in Secret %s/%s is not used (%s): %s", secret.Namespace, secret.Name, refusal.Rule, refusal.Because)
		return seen
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	api, err := bounded.Connect(bounded.WithPort(access.Server), access, unroutable.DialRoutable)
	if err == nil {
		defer api.Close()
		err = gather(ctx, api, &seen.Is)
	}
	if err != nil {
		seen.Unread = fmt.Sprintf("its API %s: %s", access.Server, bounded.Why(err, access))
		return seen
	}
	if !r.kubelets {
		return seen
	}
	seen.Is.Tunnels = tunnels(r.ctx, api, access, seen.Is.Nodes, machines)
	return seen
}

func gather(ctx context.Context, api *bounded.API, into *diagnose.Hosted) error {
	into.Nodes = map[string]diagnose.Node{}
	err := bounded.ListAll(ctx, api, bounded.Collection[*corev1.Node]{Path: "/api/v1/nodes", Of: bounded.Whole[corev1.Node]}, func(all []*corev1.Node) {
		for _, n := range all {
			into.Nodes[n.Name] = ofNode(n)
		}
	})
	if err != nil {
		return err
	}
	leases := bounded.Collection[*coordinationv1.Lease]{Path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", Of: bounded.Whole[coordinationv1.Lease]}
	err = bounded.ListAll(ctx, api, leases, func(all []*coordinationv1.Lease) {
		for _, l := range all {
			if n, is := into.Nodes[l.Name]; is && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(n.Heartbeat) {
				n.Heartbeat = l.Spec.RenewTime.Time
				into.Nodes[l.Name] = n
			}
		}
	})
	if err != nil {
		return err
	}
	if err := agents(ctx, api, into.Nodes); err != nil {
		return err
	}
	requests := bounded.Collection[*certv1.CertificateSigningRequest]{Path: "/apis/certificates.k8s.io/v1/certificatesigningrequests", Of: bounded.Whole[certv1.CertificateSigningRequest]}
	return bounded.ListAll(ctx, api, requests, func(all []*certv1.CertificateSigningRequest) {
		for _, r := range all {
			if csr.IsOurs(r) {
				into.Requests = append(into.Requests, ofRequest(r))
			}
		}
	})
}

// agents reads konnectivity's, by the label of HyperShift's DaemonSet (hostedclusterconfigoperator/controllers/resources/konnectivity/reconcile.go,
// konnectivityAgentLabels).
func agents(ctx context.Context, api *bounded.API, nodes map[string]diagnose.Node) error {
	pods := bounded.Collection[*corev1.Pod]{Path: "/api/v1/namespaces/kube-system/pods", Selects: url.Values{"labelSelector": {"app=konnectivity-agent"}}, Of: bounded.Whole[corev1.Pod]}
	return bounded.ListAll(ctx, api, pods, func(all []*corev1.Pod) {
		for _, p := range all {
			n, is := nodes[p.Spec.NodeName]
			if !is || p.DeletionTimestamp != nil {
				continue
			}
			n.Agent.Created = p.CreationTimestamp.Time
			n.Agent.Ready = slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			nodes[p.Spec.NodeName] = n
		}
	})
}

func ofNode(n *corev1.Node) diagnose.Node {
	is := diagnose.Node{Created: n.CreationTimestamp.Time}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			is.Ready, is.Heartbeat = c, c.LastHeartbeatTime.Time
		}
	}
	return is
}

func ofRequest(r *certv1.CertificateSigningRequest) diagnose.Request {
	asked, _ := csr.Read(r)
	is := diagnose.Request{Asked: asked}
	for _, c := range r.Status.Conditions {
		if c.Type != certv1.CertificateFailed {
			is.Decided, is.At, is.Because = c.Type, c.LastUpdateTime.Time, c.Message
		}
	}
	return is
}

// tunnels asks kubelets of Ready Nodes for their health, as the control plane does: through konnectivity. One that was not asked is not there.
func tunnels(ctx context.Context, api *bounded.API, access kubeconfig.Access, nodes map[string]diagnose.Node, machines []diagnose.Machine) map[string]string {
	var (
		mu    sync.Mutex
		found = map[string]string{}
		all   []func()
	)
	for _, m := range machines {
		if nodes[m.Name].Ready.Status != corev1.ConditionTrue || len(all) == mostTunnels {
			continue
		}
		all = append(all, func() {
			answer, was := asked(ctx, api, access, m.Name)
			mu.Lock()
			defer mu.Unlock()
			if was {
				found[m.Name] = answer
			}
		})
	}
	together(all...)
	return found
}

// asked is why a kubelet did not answer; empty if it did, also by refusing. It says false if it was not asked: our own time was over, or the API
// server itself refused.
func asked(whole context.Context, api *bounded.API, access kubeconfig.Access, node string) (why string, was bool) {
	ctx, cancel := context.WithTimeout(whole, 6*time.Second) // a worker that is still starting its pods answers late
	defer cancel()
	_, err := api.Do(ctx, bounded.Request{Verb: http.MethodGet, Path: "/api/v1/nodes/" + node + "/proxy/healthz", Accept: "*/*"})
	var status *apierrors.StatusError
	switch {
	case err == nil:
		return "", true
	case errors.As(err, &status) && status.ErrStatus.Code < http.StatusInternalServerError:
		return "", apierrors.IsUnexpectedServerError(err) // a kubelet answers with text, an API server with a Status
	case whole.Err() != nil:
		return "", false
	}
	return bounded.Why(err, access), true
}
