package diffcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
)

// Streams are the connections through a proxy's pod that end with it.
type Streams struct {
	// IP of the proxy on the VLAN, before the change.
	IP string `json:"ip"`
	// Open now, by the names of their backends; those that have none are left out.
	Open map[string]int `json:"open,omitempty"`
	// NotKnown is why nobody says how many are open.
	NotKnown string `json:"notKnown,omitempty"`
}

// Metrics reads the metrics of a pod.
type Metrics func(ctx context.Context, pod types.NamespacedName) ([]byte, error)

// patience is how long a pod may take to answer: a NetworkPolicy may drop what the API server sends.
const patience = 3 * time.Second

// ThroughAPI has the API server ask the pod, for which the caller needs to get pods/proxy.
func ThroughAPI(config *rest.Config) (Metrics, error) { return atPort(config, names.MetricsPort) }

func atPort(config *rest.Config, port int) (Metrics, error) {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, pod types.NamespacedName) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return set.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(port), "/metrics", nil).DoRaw(ctx)
	}, nil
}

// streams that end with a proxy's pods, which are replaced or ended.
func (d *differ) streams(ctx context.Context, before change.Picture, pods []change.Pod) (all []Streams) {
	server, is := before.Children[component.Proxy].Server.(*v1alpha1.ProxyServer)
	if !is || d.metrics == nil {
		return nil
	}
	for number, ip := range server.Spec.NetworkConfig.ServerIPs() {
		workload := names.InstanceWorkload(names.Proxy, server.Name, number)
		if !slices.ContainsFunc(pods, func(p change.Pod) bool { return p.Workload == workload && p.Verb != change.Create }) {
			continue
		}
		through := Streams{IP: string(ip)}
		open, err := d.open(ctx, server, number)
		if through.Open = open; err != nil {
			through.NotKnown = err.Error()
		}
		all = append(all, through)
	}
	return all
}

// open counts the streams to each backend that are open in the pod of a proxy's instance.
func (d *differ) open(ctx context.Context, server *v1alpha1.ProxyServer, number int) (map[string]int, error) {
	pods := &corev1.PodList{}
	if err := d.List(ctx, pods, client.InNamespace(server.Namespace), client.MatchingLabels{names.LabelApp: names.Proxy, names.LabelInstance: server.Name}); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp == nil && names.OfInstance(p.Labels, number)
	})
	if i < 0 {
		return nil, errors.New("its pod is not there, or you may not list it")
	}
	if d.silent != nil {
		return nil, d.silent
	}
	text, err := d.metrics(ctx, client.ObjectKeyFromObject(&pods.Items[i]))
	if err != nil {
		told := notTold(err, server.Namespace)
		if apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
			d.silent = told
		}
		return nil, told
	}
	return counted(text, server.Spec.Backends)
}

func notTold(err error, namespace string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not get pods/proxy in namespace %s", namespace)
	}
	return fmt.Errorf("its pod does not answer the API server, which a NetworkPolicy may keep from it: %w", err)
}

// counted are the streams that a pod's metrics have, which are Envoy's only while it answers.
func counted(text []byte, backends []v1alpha1.ProxyBackend) (map[string]int, error) {
	if !bytes.Contains(text, []byte("\nenvoy_server_live")) {
		return nil, errors.New("its Envoy does not answer")
	}
	all := map[string]int{}
	for _, found := range active.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(found[2]))
		backend := func(b v1alpha1.ProxyBackend) bool { return b.Name == string(found[1]) }
		if err == nil && n > 0 && slices.ContainsFunc(backends, backend) {
			all[string(found[1])] = n
		}
	}
	return all, nil
}

// active is Envoy's count of the connections that its TCP proxy has to a cluster, which is a backend; its health checks have none of these
// (Envoy's manual, configuration/upstream/cluster_manager/cluster_stats).
var active = regexp.MustCompile(`(?m)^envoy_cluster_upstream_cx_active\{envoy_cluster_name="([^"]+)"\} ([0-9]+)$`)

// String is how many are open, and to which backends.
func (s Streams) String() string {
	if s.NotKnown != "" {
		return fmt.Sprintf("through %s: not known how many are open: %s", s.IP, s.NotKnown)
	}
	total := 0
	var each []string
	for _, name := range slices.Sorted(maps.Keys(s.Open)) {
		total += s.Open[name]
		each = append(each, fmt.Sprintf("%s %d", name, s.Open[name]))
	}
	if total == 0 {
		return fmt.Sprintf("through %s: none is open", s.IP)
	}
	return fmt.Sprintf("through %s: %d open: %s", s.IP, total, strings.Join(each, ", "))
}
