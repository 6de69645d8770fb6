package bootstrap

import (
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	downstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/proto"
)

const (
	connectionsMonitor = "envoy.resource_monitors.global_downstream_max_connections"
	heapMonitor        = "envoy.resource_monitors.fixed_heap"
	// At fullHeap of the memory limit no connection is accepted; existing ones continue. The rest is for the kernel's socket buffers, which
	// count towards the limit too, and for what streams still buffer.
	fullHeap = 0.75
)

// overload keeps Envoy below what would end it. The cap assumes that only the client does not read. Where the target does not read either,
// Envoy buffers more, so it watches the heap too. A connection is then closed at once (the load shed point), whereas the action
// stop_accepting_connections would leave it waiting in the kernel (overload_manager.rst of Envoy 1.40).
func overload(m Machine) *overloadv3.OverloadManager {
	out := &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{
		monitor(connectionsMonitor, &downstreamv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: m.Connections}),
	}}
	if m.MemoryBytes == 0 {
		return out
	}
	out.ResourceMonitors = append(out.ResourceMonitors, monitor(heapMonitor, &heapv3.FixedHeapConfig{MaxHeapSizeBytes: uint64(m.MemoryBytes)}))
	out.LoadshedPoints = []*overloadv3.LoadShedPoint{{Name: "envoy.load_shed_points.tcp_listener_accept", Triggers: heapAt(fullHeap)}}
	return out
}

func monitor(name string, config proto.Message) *overloadv3.ResourceMonitor {
	return &overloadv3.ResourceMonitor{Name: name, ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: packed(config)}}
}

func heapAt(part float64) []*overloadv3.Trigger {
	return []*overloadv3.Trigger{{Name: heapMonitor, TriggerOneof: &overloadv3.Trigger_Threshold{Threshold: &overloadv3.ThresholdTrigger{Value: part}}}}
}
