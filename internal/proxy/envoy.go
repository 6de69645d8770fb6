package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience is how long Envoy may take to answer. Ready must be False within ten seconds after Envoy hangs; reportPause, the kubelet's probes and
// the manager's patience add to this. One late answer does not make the pod unready: Envoy is asked again at once, and the kubelet probes twice.
const patience = time.Second

// envoy reads, and only reads, Envoy's administration socket.
type envoy struct{ http *http.Client }

func newEnvoy(socket string) envoy {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return envoy{&http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: patience}}
}

func (e envoy) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://envoy"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := e.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("Envoy does not answer: %w", err)
	}
	return response.Body, nil
}

// tally counts a backend's targets: those that passed Envoy's last checks, those that let a connection time out, and those
// that Envoy has yet to try.
type tally struct{ healthy, silent, untried, total int32 }

// targets counts each backend's targets as Envoy sees them, by its own checks (envoy.admin.v3.HostHealthStatus).
func (e envoy) targets(ctx context.Context) (map[string]tally, error) {
	body, err := e.get(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var answer struct {
		Clusters []struct {
			Name  string `json:"name"`
			Hosts []struct {
				Health struct {
					Failed   bool `json:"failed_active_health_check"`
					TimedOut bool `json:"active_hc_timeout"`
					Untried  bool `json:"pending_active_hc"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading Envoy's clusters: %w", err)
	}
	counts := map[string]tally{}
	for _, cluster := range answer.Clusters {
		count := tally{total: int32(len(cluster.Hosts))}
		for _, host := range cluster.Hosts {
			switch h := host.Health; {
			case h.Untried:
				count.untried++
			case !h.Failed:
				count.healthy++
			case h.TimedOut:
				count.silent++
			}
		}
		counts[cluster.Name] = count
	}
	return counts, nil
}

// appendMetrics passes Envoy's own metrics on. The administration socket is not exposed, because it can also stop Envoy.
func (e envoy) appendMetrics(ctx context.Context, w io.Writer) error {
	body, err := e.get(ctx, "/stats/prometheus?usedonly")
	if err != nil {
		return err
	}
	defer body.Close()
	return withHelp(w, body)
}

// groups of Envoy's statistics, by the beginning of their names, and the page of Envoy's manual, below configuration, that explains them.
var groups = []struct{ prefix, of, page string }{
	{"envoy_cluster_manager_", "all backends", "upstream/cluster_manager/cluster_stats"},
	{"envoy_cluster_", "a backend", "upstream/cluster_manager/cluster_stats"},
	{"envoy_listener_manager_", "all listeners", "listeners/stats"},
	{"envoy_listener_", "a listener", "listeners/stats"},
	{"envoy_tcp_", "connections to a backend", "listeners/network_filters/tcp_proxy_filter"},
	{"envoy_server_", "the Envoy process", "observability/statistics"},
	{"envoy_", "Envoy", "observability/statistics"},
}

// withHelp adds a HELP line to each metric of Envoy, which has none.
func withHelp(w io.Writer, metrics io.Reader) error {
	lines := bufio.NewReader(metrics)
	for {
		line, err := lines.ReadString('\n')
		name, is := strings.CutPrefix(line, "# TYPE ")
		if name, _, _ = strings.Cut(name, " "); is {
			for _, g := range groups {
				if strings.HasPrefix(name, g.prefix) {
					line = fmt.Sprintf("# HELP %s Statistic of %s; Envoy's manual, configuration/%s, explains it.\n", name, g.of, g.page) + line
					break
				}
			}
		}
		if _, failed := io.WriteString(w, line); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
