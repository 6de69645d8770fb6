package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// BridgePicture is a DPUHCPBridge and what is planned from it.
type BridgePicture struct {
	// Input is what was read of it, with a stand-in for what only the operator may ask. Its Bridge is nil if it does not exist.
	bridge.Input
	Plan bridge.Plan
	// Paused is why nothing is written; empty if something may be.
	Paused string
	// Unread is what may not be read of what it is planned from, so that the plan says nothing; empty if all may be.
	Unread string
	// Unknown says what of the plan rests on a stand-in.
	Unknown []string
}

// Stopped says whether the hosted cluster's objects are not written.
func (p BridgePicture) Stopped() bool { return p.Bridge == nil || p.Paused != "" || p.Plan.Frozen }

// Wrote says whether the hosted cluster's objects are there as they were planned before a change. What registries have told the operator, only the
// bridge's status says; as long as the bridge stays the same, so does that.
func (p BridgePicture) Wrote(after BridgePicture) bool {
	return !p.Stopped() && (!bridge.SaysItIsFrozen(p.Bridge) || equality.Semantic.DeepEqual(p.Bridge.Spec, after.Bridge.Spec))
}

// Write is an object as it is and as it would be. Before is nil if it does not exist.
type Write struct {
	Kind          string
	Before, After component.Server
}

// BridgeChange is the change of one DPUHCPBridge.
type BridgeChange struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Stopped is why the hosted cluster stays as it is: the bridge is paused, or a finding holds it back.
	Stopped string `json:"stopped,omitempty"`
	// Objects that are written. Of Secrets and templates it has the names alone.
	Objects []Object `json:"objects,omitempty"`
	// ControlPlane says what HyperShift does then.
	ControlPlane []string `json:"controlPlane,omitempty"`
	// Templates from which DPF installs DPUs.
	Templates []Template `json:"templates,omitempty"`
	// DPUs says what becomes of those that are there, if templates change.
	DPUs string `json:"dpus,omitempty"`
	// Findings that the bridge does not have yet, and those for which its hosted cluster stays as it is.
	Findings []Finding `json:"findings,omitempty"`
}

// None says that nothing changes.
func (c BridgeChange) None() bool {
	return len(c.Objects)+len(c.ControlPlane)+len(c.Templates)+len(c.Findings) == 0
}

// BetweenBridges is the change that leads from one picture of a bridge to another. Writes are the objects of its plan that differ.
func BetweenBridges(before, after BridgePicture, writes []Write) BridgeChange {
	c := OfBridge(before.Bridge, after.Bridge)
	if after.Paused != "" {
		c.Stopped = after.Paused
		return c
	}
	if after.Unread != "" || before.Unread != "" {
		return c
	}
	if after.Plan.End {
		c.end(before, after)
		return c
	}
	for _, w := range writes {
		c.Objects = append(c.Objects, Written(w.Kind, w.Before, w.After)...)
	}
	c.Objects = append(c.Objects, adopted(before, after)...)
	c.Objects = append(c.Objects, secrets(before, after)...)
	c.Objects = append(c.Objects, noLonger(before, after)...)
	c.Objects = append(c.Objects, injected(before, after)...)
	c.ControlPlane = controlPlane(after, writes)
	c.Templates = templates(before, after, writes)
	for _, t := range c.Templates {
		if t.Verb != Remake {
			c.Objects = append(c.Objects, Object{Verb: t.Verb, Kind: "ConfigMap", Namespace: t.Namespace, Name: t.Name})
		}
	}
	if len(c.Templates) > 0 {
		c.DPUs = installed(after)
	}
	c.Findings = fresh(told(before.Plan.Findings), told(after.Plan.Findings))
	if !c.None() && after.Plan.Frozen && len(after.Plan.Adopts) == 0 {
		c.stop(after.Plan.Findings)
	}
	return c
}

// OfBridge is what changes in a bridge itself. Before is nil if it does not exist.
func OfBridge(before, after *dpuv1.DPUHCPBridge) BridgeChange {
	var was component.Server
	if before != nil {
		was = before
	}
	return BridgeChange{Namespace: after.Namespace, Name: after.Name, Objects: Written("DPUHCPBridge", was, after)}
}

// told leaves out what only says which image is used.
func told(all []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f finding.Finding) bool {
		return f.Severity == finding.Warning && f.Condition == dpuv1.ConditionBlueFieldContainerImageAvailable
	})
}

// end is the deletion of a bridge whose DPUCluster is gone. Nothing else is written then.
func (c *BridgeChange) end(before, after BridgePicture) {
	if before.Plan.End && before.Paused == "" {
		return
	}
	c.Objects = append(c.Objects, Object{Verb: Delete, Kind: "DPUHCPBridge", Namespace: c.Namespace, Name: c.Name})
	c.ControlPlane = []string{fmt.Sprintf("the bridge and its hosted cluster are deleted: DPUCluster %s is gone, and dpuClusterDeletionPolicy is Delete", bridge.ClusterKey(after.Bridge))}
}

// stop says why the hosted cluster stays as it is.
func (c *BridgeChange) stop(all []finding.Finding) {
	var reasons []string
	for _, f := range all {
		if bridge.Freezes(f) {
			reasons = append(reasons, f.Reason)
			c.Findings = append(c.Findings, fresh(nil, []finding.Finding{f})...)
		}
	}
	slices.Sort(reasons)
	c.Stopped = strings.Join(slices.Compact(reasons), ", ") + " prevents it"
	unique := c.Findings[:0:0]
	for _, f := range c.Findings {
		if !slices.Contains(unique, f) {
			unique = append(unique, f)
		}
	}
	c.Findings = unique
}

// adopted are the objects of a hosted cluster that become the bridge's: they get its labels.
func adopted(before, after BridgePicture) (all []Object) {
	if len(before.Plan.Adopts) > 0 {
		return nil
	}
	for _, a := range after.Plan.Adopts {
		kind := "Secret"
		switch a.Object.(type) {
		case *hyperv1.HostedCluster:
			kind = "HostedCluster"
		case *hyperv1.NodePool:
			kind = "NodePool"
		}
		all = append(all, Object{Verb: Update, Kind: kind, Namespace: a.Object.GetNamespace(), Name: a.Object.GetName(), Fields: []Field{
			{Path: within("metadata.labels", names.LabelBridge), From: a.Object.GetLabels()[names.LabelBridge], To: a.Labels[names.LabelBridge]},
		}})
	}
	return all
}

// secrets are the copies of the user's Secrets, and the key of etcd, by their names alone.
func secrets(before, after BridgePicture) (all []Object) {
	if after.Plan.Frozen {
		return nil
	}
	of := func(verb, name string) Object {
		return Object{Verb: verb, Kind: "Secret", Namespace: after.Bridge.Namespace, Name: name}
	}
	var had []string
	if before.Bridge != nil {
		for _, key := range before.Copied() {
			had = append(had, key.Name)
		}
	}
	for _, name := range after.Plan.Copies {
		if !slices.Contains(had, name) && (!before.Wrote(after) || !slices.Contains(before.Plan.Copies, name)) {
			all = append(all, of(Create, name))
		}
	}
	for _, name := range had {
		if !slices.Contains(after.Plan.Copies, name) && (!before.Wrote(after) || slices.Contains(before.Plan.Copies, name)) {
			all = append(all, of(Delete, name))
		}
	}
	if key := after.Plan.Key; key != nil && (!before.Wrote(after) || before.Plan.Key == nil) {
		all = append(all, of(Create, key.Name))
	}
	return all
}

// noLonger are objects that only the plan of before has. Secrets are told apart; templates are among the templates.
func noLonger(before, after BridgePicture) (all []Object) {
	if before.Wrote(after) && !after.Stopped() {
		all = objects(besideSecrets(before.Plan.Objects), besideSecrets(after.Plan.Objects))
		all = slices.DeleteFunc(all, func(o Object) bool { return o.Verb != Delete })
	}
	for _, t := range after.Plan.Services.Remove {
		same := func(b dpf.DPUServiceTemplate) bool { return b.Namespace == t.Namespace && b.Name == t.Name }
		if before.Paused != "" || !slices.ContainsFunc(before.Plan.Services.Remove, same) {
			all = append(all, Object{Verb: Delete, Kind: "DPUServiceTemplate", Namespace: t.Namespace, Name: t.Name})
		}
	}
	return all
}

func besideSecrets(all []runtime.ApplyConfiguration) []runtime.ApplyConfiguration {
	return slices.DeleteFunc(slices.Clone(all), func(o runtime.ApplyConfiguration) bool { return KindOf(o) == "Secret" })
}

// KindOf is the kind of an apply configuration.
func KindOf(o runtime.ApplyConfiguration) string {
	var is struct{ Kind string }
	if err := json.Unmarshal(desired.Encoded(o), &is); err != nil {
		panic(err) // it was encoded just now
	}
	return is.Kind
}

// injected are the Secret with the kubeconfig and the DPUCluster, if the bridge begins to hand it over.
func injected(before, after BridgePicture) (all []Object) {
	i := after.Plan.Inject
	if i == nil || before.Paused == "" && before.Plan.Inject != nil {
		return nil
	}
	key := bridge.InjectedKey(after.Bridge)
	if after.Injected.Secret == nil {
		all = append(all, Object{Verb: Create, Kind: "Secret", Namespace: key.Namespace, Name: key.Name})
	}
	if cluster := after.DPUCluster; i.Refer {
		all = append(all, Object{Verb: Update, Kind: "DPUCluster", Namespace: cluster.Namespace, Name: cluster.Name, Fields: []Field{{Path: "spec.kubeconfig", To: key.Name}}})
	}
	return all
}

// controlPlane says what HyperShift does about a HostedCluster that is made, or gets another release.
func controlPlane(after BridgePicture, writes []Write) (all []string) {
	for _, w := range writes {
		is, hosted := w.After.(*hyperv1.HostedCluster)
		if !hosted {
			continue
		}
		was, existed := w.Before.(*hyperv1.HostedCluster)
		switch {
		case !existed:
			all = append(all, fmt.Sprintf("HyperShift makes it in namespace %s, of release %s", bridge.ControlPlane(after.Bridge), is.Spec.Release.Image), publishing(after, is))
		case was.Spec.Release.Image != is.Spec.Release.Image:
			all = append(all, fmt.Sprintf("HyperShift rolls it from release %s to %s", was.Spec.Release.Image, is.Spec.Release.Image))
			if is.Spec.ControllerAvailabilityPolicy == hyperv1.SingleReplica {
				all = append(all, "it is SingleReplica: its API may be away while pods of it are replaced; for how long is not known here")
			}
		}
	}
	return all
}

// publishing says where the control plane's services are reached.
func publishing(after BridgePicture, hc *hyperv1.HostedCluster) string {
	var all []string
	for _, s := range hc.Spec.Services {
		text := fmt.Sprintf("%s by %s", s.Service, s.Type)
		switch vip := bridge.VirtualIP(after.Bridge); {
		case s.NodePort != nil:
			text += " at " + s.NodePort.Address
		case s.Type == hyperv1.LoadBalancer && vip.IsValid():
			text += " at " + vip.String()
		}
		all = append(all, text)
	}
	return "it is published: " + strings.Join(all, ", ")
}
