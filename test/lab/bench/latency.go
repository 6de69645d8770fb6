package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// backends are two pods that tell their name, and a Service that leads to whichever the bench writes into its slice.
const backends = `apiVersion: v1
kind: Pod
metadata: {name: bench-a, namespace: clusters}
spec:
  containers: [{name: testapp, image: "e2e.local/testapp:1", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: bench-b, namespace: clusters}
spec:
  containers: [{name: testapp, image: "e2e.local/testapp:1", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Service
metadata: {name: bench, namespace: clusters}
spec:
  ports: [{port: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: bench, namespace: clusters, labels: {kubernetes.io/service-name: bench}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: []
`

// latency is how soon an on-link client sees a record and an endpoint that were changed at their source: in the Infra, and in
// the EndpointSlice of what an extra endpoint leads to.
func (b *bench) latency(ctx context.Context) ([]row, error) {
	c, err := b.newClient(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Remove(context.WithoutCancel(ctx)) //nolint:errcheck // nobody is left to hear of it, and the lab goes next
	pods, err := b.startBackends(ctx)
	if err != nil {
		return nil, err
	}
	b.Say("changing a record, %d times", changes)
	records, err := b.measure(ctx, b.renameExtra, func(ctx context.Context, i int) error { return c.resolves(ctx, extraHost(i)) })
	if err != nil {
		return nil, err
	}
	b.Say("%s; changing an endpoint, %d times", records, changes)
	turn := func(ctx context.Context, i int) error { return b.leadTo(ctx, pods[i%2]) }
	endpoints, err := b.measure(ctx, turn, func(ctx context.Context, i int) error { return c.reaches(ctx, pods[i%2].Name) })
	if err != nil {
		return nil, err
	}
	b.Say("%s", endpoints)
	return []row{
		{fmt.Sprintf("a changed record answers, from the write of the Infra (%d)", changes), records.String(), "< 1 s"},
		{fmt.Sprintf("a changed endpoint is reached through Envoy, from the write of its slice (%d)", changes), endpoints.String(), "< 0.5 s"},
	}, nil
}

const changes = 10

// measure makes changes one by one and times each from the moment it is sent until it shows.
func (b *bench) measure(ctx context.Context, change, shows func(ctx context.Context, i int) error) (times, error) {
	const (
		apart   = time.Second          // the follow-up of one change is not to weigh on the next
		patient = 30 * time.Second     // for one change
		between = 5 * time.Millisecond // two looks
	)
	var all times
	for i := range changes + 1 {
		sent := time.Now()
		if err := change(ctx, i); err != nil {
			return nil, err
		}
		err := shows(ctx, i)
		for ; err != nil; err = shows(ctx, i) {
			if time.Since(sent) > patient {
				return nil, fmt.Errorf("change %d does not show: %w", i, err)
			}
			if err := pause(ctx, between); err != nil {
				return nil, err
			}
		}
		if i > 0 { // the first one adds what the others change
			all = append(all, time.Since(sent))
		}
		if err := pause(ctx, apart); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func extraHost(i int) string { return fmt.Sprintf("change-%d.bench.example.com", i) }

const extraPort = 8888

// renameExtra gives the Infra's extra endpoint another hostname.
func (b *bench) renameExtra(ctx context.Context, i int) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "hostedcluster.densityops.com", Version: "v1alpha1", Kind: "Infra"})
	o.SetNamespace("clusters")
	o.SetName("c1")
	patch := fmt.Sprintf(`{"spec":{"extraEndpoints":[{"name":"bench","hostnames":[%q],"port":%d,"protocol":"TCP","target":{"service":"bench","port":8080}}]}}`, extraHost(i), extraPort)
	return b.cluster.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (b *bench) startBackends(ctx context.Context) ([]corev1.Pod, error) {
	if err := b.Apply(ctx, backends); err != nil {
		return nil, err
	}
	names := []string{"bench-a", "bench-b"}
	if _, err := b.Kubectl(ctx, "-n", "clusters", "wait", "--for=condition=Ready", "pod/"+names[0], "pod/"+names[1], "--timeout=60s"); err != nil {
		return nil, err
	}
	pods := make([]corev1.Pod, len(names))
	for i, name := range names {
		if err := b.cluster.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: name}, &pods[i]); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// leadTo makes a pod the only one behind the Service.
func (b *bench) leadTo(ctx context.Context, pod corev1.Pod) error {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: pod.Namespace}}
	before := client.MergeFrom(slice.DeepCopy())
	slice.Endpoints = []discoveryv1.Endpoint{{
		Addresses: []string{pod.Status.PodIP},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
	}}
	return b.cluster.Patch(ctx, slice, before)
}

// onLink is a client of VLAN 100 that knows where the Infra's DNS and proxy are.
type onLink struct {
	*scene.Neighbour
	dns, proxy string
}

func (b *bench) newClient(ctx context.Context) (*onLink, error) {
	var c onLink
	for component, address := range map[string]*string{"dns": &c.dns, "proxy": &c.proxy} {
		out, err := b.Kubectl(ctx, "-n", "clusters", "get", "infra", "c1", "-o", fmt.Sprintf(`jsonpath={.status.addresses[?(@.component==%q)].ip}`, component))
		if err != nil {
			return nil, err
		}
		*address, _, _ = strings.Cut(out, " ")
	}
	var err error
	c.Neighbour, err = b.NewNeighbour(ctx, "bench", "br100", "192.168.100.250/24")
	return &c, err
}

// oneLook is the longest that one look may take; a lost packet is not to cost more than that.
const oneLook = 300 * time.Millisecond

func (c *onLink) resolves(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, oneLook)
	defer cancel()
	answer, err := c.Resolve(ctx, c.dns, name)
	if err == nil && !slices.Contains(answer, c.proxy) {
		err = fmt.Errorf("%s is %v, want %s", name, answer, c.proxy)
	}
	return err
}

// reaches opens a new connection through the proxy and reads who answers it.
func (c *onLink) reaches(_ context.Context, pod string) error {
	conn, err := c.Dial(net.JoinHostPort(c.proxy, fmt.Sprint(extraPort)), oneLook)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(oneLook)); err != nil {
		return err
	}
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if !strings.Contains(string(answer), "host="+pod+" ") {
		return errors.Join(err, fmt.Errorf("not %s answers but %q", pod, answer))
	}
	return nil
}
