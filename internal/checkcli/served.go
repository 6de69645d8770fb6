package checkcli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/step"
)

// patience is how long the webhook may take to show its certificate.
const patience = 10 * time.Second

// served asks the webhook's server for its certificates: at the Service's name if it has one outside the cluster, or else at one of its pods,
// through the API server.
func (r *Reader) served(ctx context.Context, w *admissionregistrationv1.ValidatingWebhookConfiguration) step.Read[[][]byte] {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if len(w.Webhooks) == 0 || w.Webhooks[0].ClientConfig.Service == nil {
		return step.Read[[][]byte]{Unread: "the configuration names no Service"}
	}
	to := w.Webhooks[0].ClientConfig.Service
	service := get(ctx, r, &corev1.Service{}, "services", to.Namespace, to.Name)
	port := ptr.Deref(to.Port, 443)
	switch {
	case service.Unread != "":
		return step.Read[[][]byte]{Unread: service.Unread}
	case service.Is == nil:
		return step.Read[[][]byte]{Unread: fmt.Sprintf("Service %s/%s does not exist", to.Namespace, to.Name)}
	case service.Is.Spec.Type == corev1.ServiceTypeExternalName:
		chain, err := shown(ctx, net.JoinHostPort(service.Is.Spec.ExternalName, strconv.Itoa(int(port))))
		return read(chain, check.Right{}, err)
	}
	forward := check.Right{Verb: "create", Resource: "pods/portforward", Namespace: to.Namespace}
	if may, err := r.may(ctx, forward, nil); err == nil && !may { // client-go's forwarder does not tell a refusal from other errors
		return step.Read[[][]byte]{Unread: step.MayNot + forward.String()}
	}
	chain, err := r.throughPod(ctx, service.Is, port)
	return read(chain, forward, err)
}

// shown are the certificates of the server at an address. Whom to trust is decided later.
func shown(ctx context.Context, address string) (chain [][]byte, err error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec // nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its certificate: %w", address, err)
	}
	defer conn.Close()
	for _, c := range conn.(*tls.Conn).ConnectionState().PeerCertificates {
		chain = append(chain, c.Raw)
	}
	return chain, nil
}

// throughPod asks the Ready pods of the Service until one shows its certificate. A pod that ends is still Ready for a moment, and takes nothing.
func (r *Reader) throughPod(ctx context.Context, s *corev1.Service, port int32) ([][]byte, error) {
	pods := &corev1.PodList{}
	if err := r.api.List(ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
		return nil, err
	}
	var why []string
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || kubelet.PodCondition(&p, corev1.PodReady).Status != corev1.ConditionTrue {
			continue
		}
		chain, err := r.shownBy(ctx, client.ObjectKeyFromObject(&p), targetOf(s, port, p))
		if err == nil {
			return chain, nil
		}
		why = append(why, fmt.Sprintf("pod %s: %v", p.Name, err))
	}
	return nil, errors.New(cmp.Or(strings.Join(why, "; "), "no pod of its Service is Ready"))
}

// shownBy are the certificates of a pod's server. One that is silent leaves time for the next.
func (r *Reader) shownBy(ctx context.Context, pod types.NamespacedName, port int32) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience/3)
	defer cancel()
	local, stop, err := r.forward(ctx, pod, port)
	if err != nil {
		return nil, err
	}
	defer stop()
	return shown(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(local))))
}

// targetOf is the pod's port behind a Service's.
func targetOf(s *corev1.Service, port int32, pod corev1.Pod) int32 {
	for _, p := range s.Spec.Ports {
		if p.Port != port {
			continue
		}
		for _, c := range pod.Spec.Containers {
			for _, named := range c.Ports {
				if p.TargetPort.StrVal != "" && named.Name == p.TargetPort.StrVal {
					return named.ContainerPort
				}
			}
		}
		return cmp.Or(p.TargetPort.IntVal, port)
	}
	return port
}

// forward opens a local port that leads to a pod's, until stop.
func (r *Reader) forward(ctx context.Context, pod types.NamespacedName, port int32) (local uint16, stop func(), err error) {
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return 0, nil, err
	}
	tripper, upgrader, err := spdy.RoundTripperFor(r.config)
	if err != nil {
		return 0, nil, err
	}
	at := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesWithContext(ctx, spdy.NewDialer(upgrader, &http.Client{Transport: tripper}, http.MethodPost, at),
		[]string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return 0, nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err = <-ended:
		cancel()
		return 0, nil, cmp.Or(err, ctx.Err())
	case <-ctx.Done(): // the forwarder does not end while it dials
		cancel()
		return 0, nil, ctx.Err()
	}
	stop = func() {
		cancel()
		<-ended //nolint:errcheck // it was told to end, so why it did does not matter
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return 0, nil, err
	}
	return ports[0].Local, stop, nil
}
