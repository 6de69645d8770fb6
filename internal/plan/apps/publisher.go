package apps

import (
	"net/netip"

	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/input"
)

const (
	fieldApps    = "spec.appsIngress"
	fieldMode    = fieldApps + ".mode"
	fieldClass   = fieldApps + ".metallb.loadBalancerClass"
	fieldPool    = fieldApps + ".metallb.ipAddressPoolRange"
	fieldService = fieldApps + ".service.name"
	fieldPorts   = fieldApps + ".ports"
)

// publisher plans *.apps from what the hosted cluster offers. Its findings prevent nothing else.
type publisher struct {
	address.Addressed
	spec     v1alpha1.AppsIngress
	before   input.AppsRoute // the children's
	route    input.AppsRoute // the planned one
	plan     Apps
	findings []finding.Finding
}

func (a *publisher) find(f finding.Builder, format string, args ...any) {
	a.findings = append(a.findings, f.Say(format, args...))
}

func fail(reason, field string) finding.Builder {
	return finding.Fail(v1alpha1.ConditionAppsIngressReady, reason).At(field)
}

func warn(reason, field string) finding.Builder {
	return finding.Warn(v1alpha1.ConditionAppsIngressReady, reason).At(field)
}

func wait(reason string) finding.Builder {
	return finding.Wait(v1alpha1.ConditionAppsIngressReady, reason).At(fieldApps)
}

// Apps is the plan for *.apps of an Infra, besides the rows of the endpoint table.
type Apps struct {
	// Service is the desired one in the hosted cluster; nil: none.
	Service *accore.ServiceApplyConfiguration
	// Undecided: it is not known which Service is desired; an existing one stays.
	Undecided bool
	// Addresses are those of *.apps on the VLAN.
	Addresses []netip.Addr
	// Away: the hosted cluster cannot be read.
	Away bool
	// Unread: the hosted cluster has not been read since the manager started or Access changed; the status stays as it was.
	Unread bool
}
