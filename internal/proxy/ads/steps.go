package ads

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/cldmnky/oooi/internal/proxy/translate"
)

// step is a configuration on the way to another, and the type whose acknowledgement ends the step.
type step struct {
	config   translate.Config
	awaits   resource.Type
	snapshot *cachev3.Snapshot // of config, from Set on
}

// steps make before they break: clusters are added before a listener uses them, and removed once none does. Envoy acknowledges a new
// cluster only after it has warmed it; then a listener may use it ("Eventual consistency considerations" in xds_protocol.rst of Envoy 1.40).
func steps(was *translate.Config, is translate.Config) []step {
	last := step{config: is, awaits: resource.ListenerType}
	if was == nil {
		return []step{last}
	}
	both := translate.Config{
		Clusters:  union(is.Clusters, was.Clusters, (*clusterv3.Cluster).GetName),
		Endpoints: union(is.Endpoints, was.Endpoints, (*endpointv3.ClusterLoadAssignment).GetClusterName),
	}
	var path []step
	if len(both.Clusters) > len(was.Clusters) {
		both.Listeners = was.Listeners
		path = append(path, step{config: both, awaits: resource.ClusterType})
	}
	if len(both.Clusters) > len(is.Clusters) {
		both.Listeners = is.Listeners
		path = append(path, step{config: both, awaits: resource.ListenerType})
	}
	return append(path, last)
}

// union has the resources of both, and the first's if both have one with the same name.
func union[T any](first, second []T, name func(T) string) []T {
	seen := map[string]bool{}
	var all []T
	for _, r := range slices.Concat(first, second) {
		if !seen[name(r)] {
			seen[name(r)] = true
			all = append(all, r)
		}
	}
	return all
}
