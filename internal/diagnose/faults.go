package diagnose

import (
	"fmt"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/step"
)

// FaultOf is what the proxy's probe found of a backend, if one answers at all.
func (f Facts) FaultOf(backend string) *v1alpha1.BackendFault {
	if f.Proxy.Is == nil || !f.Proxy.Is.Probes() {
		return nil
	}
	i := slices.IndexFunc(f.Proxy.Is.Status.Backends, func(b v1alpha1.BackendStatus) bool { return b.Name == backend && b.Healthy > 0 })
	if i < 0 {
		return nil
	}
	return f.Proxy.Is.Status.Backends[i].Fault
}

// faulty is the first essential backend whose TLS keeps workers out. Ignition's HTTP answer is judged with what it depends on.
func (f Facts) faulty() (is step.Step, found bool) {
	for _, name := range endpoint.Essential {
		fault := f.FaultOf(name)
		if fault == nil {
			continue
		}
		cause, do := "", ""
		switch plane := f.controlPlane(); fault.Reason {
		case v1alpha1.FaultNoHandshake:
			cause, do = noHandshake, fmt.Sprintf("kubectl -n %s get pods: look at the log of what serves %s", plane, name)
		case v1alpha1.FaultNotYetValid:
			cause, do = notYetValid, "set the clocks of the management cluster's nodes right: one of them made the certificate, and the proxy's node judges it; then have it made again"
		case v1alpha1.FaultExpired:
			cause, do = expired, fmt.Sprintf("HyperShift renews its certificates a month before; kubectl -n %s logs deployment/control-plane-operator says why not. If the Secret has a newer one, restart the pods that serve %s", plane, name)
		case v1alpha1.FaultAnotherName:
			cause, do = anotherName, fmt.Sprintf("compare that with spec.services of HostedCluster %s; if they agree, restart the pods in %s that serve %s, which load their certificate when they start", f.cluster(), plane, name)
		default: // of Ignition, or of a later release
			continue
		}
		return fail(cause, do, "a target of %s answers, and workers refuse it: %s", name, fault.Message), true
	}
	return is, false
}

// ignitionFails says that Ignition's server runs, and that its answers are of no use.
func (f Facts) ignitionFails() (is step.Step, found bool) {
	fault := f.FaultOf("ignition")
	if fault == nil || fault.Reason != v1alpha1.FaultIgnition {
		return is, false
	}
	return fail(ignitionFails, fmt.Sprintf("kubectl -n %s logs deployment/ignition-server-proxy, and deployment/ignition-server", f.controlPlane()), "Ignition's server runs, but %s", fault.Message), true
}
