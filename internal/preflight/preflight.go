// Package preflight says, before anything is created, whether an Infra's HostedCluster can work on its VLAN, and whether the DPUs of a bridge
// can join, in the words that their conditions will have.
package preflight

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/render"
)

// Report is what was found of one Infra or bridge.
type Report struct {
	ofBridge  bool
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Works     bool   `json:"works"`
	// Ask is the command that requests the Infra; empty if something already does.
	Ask string `json:"ask,omitempty"`
	// Serves is what the Infra would provide; nil where that cannot be told.
	Serves   *Serves   `json:"serves,omitempty"`
	Findings []Finding `json:"findings"`
	// NotJudged is what neither files nor flags say enough about: no finding there promises nothing.
	NotJudged []string `json:"notJudged,omitempty"`
}

// Serves is what an Infra would provide for its workers.
type Serves struct {
	CIDR, Network, Domain string
	// Addresses of the enabled components' instances, in their order.
	Addresses []v1alpha1.AssignedAddress
	// Leases is the pool of DHCP; empty where DHCP is off.
	Leases string
	// Dials are the endpoints that workers dial, as far as these are published or written.
	Dials []string
}

func serves(in input.Input, o plan.Outlook) *Serves {
	s := &Serves{CIDR: string(in.Infra.Spec.NetworkConfig.CIDR), Network: input.Refs(in.Infra).NAD.String(), Domain: o.Domain, Addresses: o.Addresses, Dials: o.Dials}
	if o.Pool.IsValid() {
		s.Leases = o.Pool.String()
	}
	return s
}

// rows are the names and values to print besides the network and what workers dial.
func (s Serves) rows() [][2]string {
	rows := [][2]string{{"domain", s.Domain}}
	for _, a := range s.Addresses {
		name := a.Component
		if a.Instance > 0 {
			name = string(component.Name(name).Second())
		}
		rows = append(rows, [2]string{name, string(a.IP)})
		if a.Component == string(component.DHCP) && a.Instance == 0 {
			rows = append(rows, [2]string{"leases", s.Leases})
		}
	}
	return slices.DeleteFunc(rows, func(row [2]string) bool { return row[1] == "" })
}

// MarshalJSON writes a field for each component.
func (s Serves) MarshalJSON() ([]byte, error) {
	var fields []string
	for _, row := range append([][2]string{{"cidr", s.CIDR}, {"network", s.Network}}, s.rows()...) {
		fields = append(fields, fmt.Sprintf("%q:%s", row[0], desired.Encoded(row[1])))
	}
	if len(s.Dials) > 0 {
		fields = append(fields, fmt.Sprintf("%q:%s", "dials", desired.Encoded(s.Dials)))
	}
	return []byte("{" + strings.Join(fields, ",") + "}"), nil
}

// Finding is one thing that was found.
type Finding struct {
	Code      string           `json:"code"`
	Severity  finding.Severity `json:"severity"`
	Condition string           `json:"condition"`
	// Object and Field are where the value in question is written.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	// YAML mends it: merge patches, one document per object. Empty when there is more than one way.
	YAML string `json:"yaml,omitempty"`
	// Anew: the YAML belongs into the object's own file. If the object exists, delete it and create it with the YAML.
	Anew bool `json:"anew,omitempty"`
}

// All judges the Infras of files, and those that HostedClusters' annotations ask for; where there are none, those that every HostedCluster
// would get if it asked.
func All(objects render.Objects, settings input.Settings) []Report {
	settings.IsolatesNetworks = true // files seldom tell whether they are for OpenShift
	all, served := judged(objects, settings)
	if len(all) > 0 {
		for _, hc := range objects.Unasked(served) {
			all[0].NotJudged = append(all[0].NotJudged, fmt.Sprintf("HostedCluster %s, which requests no Infra; request one with: %s", hc, asks(hc.Namespace, hc.Name)))
		}
		return all
	}
	if len(objects.Bridges()) > 0 {
		return nil // the files are about bridges, whose hosted clusters need no Infra
	}
	all, _ = judged(objects.Asking(), settings)
	for i := range all {
		all[i].Ask = asks(all[i].Namespace, all[i].Name)
	}
	return all
}

// asks is the command with which a HostedCluster requests an Infra.
func asks(namespace, name string) string {
	return finding.Annotate(namespace, name, names.AnnotationInfra, names.InfraAuto)
}

// judged also returns the HostedClusters of the Infras.
func judged(objects render.Objects, settings input.Settings) (all []Report, served map[types.NamespacedName]bool) {
	served = map[types.NamespacedName]bool{}
	whole, made, frozen := objects.Provisioned(settings)
	yet := yetToBeMade(made)
	for _, h := range frozen {
		all = append(all, report(h.Infra, asking(h)))
	}
	for _, in := range whole.Inputs(settings) {
		if key, ok := in.HostedClusterKey(); ok {
			served[key] = true
		}
		r := report(in.Infra, ofExisting(yet, atSource(in.Infra, append(asking(made[in.Infra]), misnamed(in, whole, beforehand(in, plan.Infra(in)))...))))
		outlook, ok := plan.OutlookOf(in)
		if r.NotJudged = notJudged(in, outlook); ok {
			r.Serves = serves(in, outlook)
		}
		all = append(all, r)
	}
	return all, served
}

// yetToBeMade are the Infras that are not in the files.
func yetToBeMade(made map[*v1alpha1.Infra]render.Rendering) map[types.NamespacedName]bool {
	yet := map[types.NamespacedName]bool{}
	for infra, rendering := range made {
		if len(rendering.Objects) > 0 {
			yet[types.NamespacedName{Namespace: infra.Namespace, Name: infra.Name}] = true
		}
	}
	return yet
}

// ofExisting drops changes to an Infra that an annotation has yet to make: there is nothing to patch.
func ofExisting(yet map[types.NamespacedName]bool, findings []finding.Finding) []finding.Finding {
	of := func(c finding.Change) types.NamespacedName {
		return types.NamespacedName{Namespace: c.Of.Namespace, Name: c.Of.Name}
	}
	for i := range findings {
		if slices.ContainsFunc(findings[i].Changes, func(c finding.Change) bool { return c.Of.Kind == "Infra" && yet[of(c)] }) {
			findings[i].Changes = nil
		}
	}
	return findings
}

func notJudged(in input.Input, outlook plan.Outlook) (all []string) {
	hc := in.HostedCluster
	if hc != nil && hc.Spec.Platform.Kubevirt != nil && len(in.NodePools) == 0 && len(permission.Check(in)) == 0 {
		all = append(all, fmt.Sprintf("whether workers are attached correctly and have enough addresses: the files contain no NodePool of HostedCluster %s/%s", hc.Namespace, hc.Name))
	}
	if cp := in.HostedControlPlane; hc != nil && len(hc.Spec.Services) == 0 && (cp == nil || len(cp.Spec.Services) == 0) {
		all = append(all, fmt.Sprintf("what workers dial: HostedCluster %s/%s has no spec.services, and the files contain no HostedControlPlane of it, which says how HyperShift publishes them", hc.Namespace, hc.Name))
	}
	for _, pool := range in.NodePools {
		if pool.Spec.Platform.Kubevirt == nil && !input.Elsewhere(pool.Spec.Platform.Type) {
			all = append(all, fmt.Sprintf("whether the machines of NodePool %s/%s (platform %s) are on the VLAN: no field says it", pool.Namespace, pool.Name, pool.Spec.Platform.Type))
		}
		if pool.Spec.Platform.Type == hyperv1.AgentPlatform {
			all = append(all, fmt.Sprintf("whether the machines of NodePool %s/%s are discovered: before they ask for Ignition, Agent's discovery image asks the assisted-service of the management cluster, which the VLAN has only if extraEndpoints of the Infra publish its names", pool.Namespace, pool.Name))
		}
	}
	if len(outlook.Anywhere) > 0 {
		all = append(all, fmt.Sprintf("whether the nodes of our pods (%s) have the VLAN: they can run on any node; if only some nodes have the VLAN, set nodeSelector of these infraComponents, or of all NodePools (spec.platform.kubevirt), or annotation %s of the NetworkAttachmentDefinition",
			strings.Join(outlook.Anywhere, ", "), nad.ResourceName))
	}
	if len(in.Settings.PodCIDRs) == 0 || len(in.Settings.ServiceCIDRs) == 0 {
		all = append(all, "whether addresses overlap the management cluster's: set --pod-cidrs and --service-cidrs")
	}
	return all
}

// asking are the findings of the HostedCluster that requests an Infra, and has its name.
func asking(r render.Rendering) []finding.Finding {
	if len(r.Findings) == 0 {
		return nil
	}
	return finding.About(endpoint.ObjectNamed(r.Infra.Namespace, r.Infra.Name), r.Findings)
}

// Of judges one Infra by its plan.
func Of(in input.Input, p plan.InfraPlan) Report { return report(in.Infra, beforehand(in, p)) }

// beforehand leaves out what HyperShift has yet to make: before anything is created, its absence is no error.
func beforehand(in input.Input, p plan.InfraPlan) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(p.Findings), func(f finding.Finding) bool {
		return f.Severity == finding.Waiting && in.HostedCluster != nil
	})
}

func report(infra *v1alpha1.Infra, findings []finding.Finding) Report {
	return Report{Namespace: infra.Namespace, Name: infra.Name, Works: true, Findings: []Finding{}}.with(findings)
}

func (r Report) with(findings []finding.Finding) Report {
	for _, f := range findings {
		r.Works = r.Works && !f.Severity.MustMend()
		r.Findings = append(r.Findings, Finding{
			Code: f.Reason, Severity: f.Severity, Condition: f.Condition, Object: f.Of.String(), Field: f.Field, Reason: f.Message, YAML: f.YAML(), Anew: anew(f),
		})
	}
	return r
}
