// Package moving makes bridges of the manifests of the public operator (rh-ecosystem-edge/dpf-hcp-provisioner-operator, main 31ded85b), and says
// what in them a bridge does not have.
package moving

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	bridgeac "github.com/cldmnky/oooi/api/provisioning/v1alpha1/applyconfiguration/provisioning/v1alpha1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/refgrant"
	"github.com/cldmnky/oooi/internal/valid"
)

var (
	provisioner = dpuv1.GroupVersion.WithKind("DPFHCPProvisioner")
	config      = dpuv1.GroupVersion.WithKind("DPFHCPProvisionerConfig")
	// Kinds are those that are read. Their group is ours.
	Kinds = []schema.GroupVersionKind{provisioner, config}
)

// Imported stands for a condition in findings about a manifest.
const Imported = "Imported"

// Move is what becomes of one object of the public operator's.
type Move struct {
	From finding.Object
	// Bridge takes its place, with the fields that are set; nil for a DPFHCPProvisionerConfig, and for a manifest that none can be made of.
	Bridge   *bridgeac.DPUHCPBridgeApplyConfiguration
	Findings []finding.Finding
}

// MustMend says whether something must be changed before the bridge can be applied.
func (m Move) MustMend() bool {
	return slices.ContainsFunc(m.Findings, func(f finding.Finding) bool { return f.Severity.MustMend() })
}

// All are the moves of the objects that are the public operator's, in their order.
func All(objects []runtime.Object) (all []Move) {
	for _, object := range objects {
		u, is := object.(*unstructured.Unstructured)
		if !is || !slices.Contains(Kinds, u.GroupVersionKind()) {
			continue
		}
		m := Move{From: finding.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}}
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		if u.GroupVersionKind() == config {
			m.leftOver(spec, settings)
		} else {
			m.From.Namespace = cmp.Or(m.From.Namespace, metav1.NamespaceDefault)
			m.Bridge = m.bridge(u, spec)
		}
		all = append(all, m)
	}
	return all
}

func (m *Move) find(f finding.Finding) {
	m.Findings = append(m.Findings, finding.About(m.From, []finding.Finding{f})...)
}

// warn adds findings of a bridge that can be applied, and waits.
func (m *Move) warn(all []finding.Finding) {
	for _, f := range all {
		f.Severity = finding.Warning
		m.find(f)
	}
}

// bridge is the one that a DPFHCPProvisioner becomes.
func (m *Move) bridge(u *unstructured.Unstructured, theirs map[string]any) *bridgeac.DPUHCPBridgeApplyConfiguration {
	ours := map[string]any{hostedReplicas: hostedDefault}
	for _, f := range fields {
		if value := f.take(theirs); value != nil && f.ours != "" {
			ours[f.ours] = value
		} else if value != nil {
			m.lacks(f, value)
		}
	}
	if ours[virtualIP] != nil {
		ours[exposed] = true
	}
	m.leftOver(theirs, nil)
	spec := bridgeac.DPUHCPBridgeSpec()
	if err := typed(ours, spec); err != nil {
		m.find(finding.Refuse(Imported, "ValueInvalid").At("spec").Say("no bridge can be made of it: %v", err))
		return nil
	}
	m.judge(spec)
	return bridgeac.DPUHCPBridge(m.From.Name, m.From.Namespace).WithLabels(u.GetLabels()).WithSpec(spec)
}

// take removes the field from a spec and returns its value, or what the public operator takes without one. Empty text is none.
func (f field) take(spec map[string]any) any {
	path := strings.Split(f.theirs, ".")
	value, found, err := unstructured.NestedFieldCopy(spec, path...)
	if !found || err != nil || value == "" || value == nil {
		value = f.unset
	}
	unstructured.RemoveNestedField(spec, path...)
	if parent, nested, _ := unstructured.NestedMap(spec, path[0]); nested && len(path) > 1 && len(parent) == 0 {
		delete(spec, path[0])
	}
	return value
}

func (m *Move) lacks(f field, value any) {
	m.find(finding.Warn(Imported, "NoCounterpart").At("spec."+f.theirs).Say("(%s) has no counterpart: %s", inJSON(value), f.says))
}

// leftOver reports what is written, by the sentences that are known for it.
func (m *Move) leftOver(spec map[string]any, known []field) {
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		f := field{theirs: name, says: "the operator's version that is known here (31ded85b) has no such field, or one of another type"}
		if i := slices.IndexFunc(known, func(k field) bool { return k.theirs == name }); i >= 0 {
			f = known[i]
		}
		if value := spec[name]; value != "" && value != false && value != nil {
			m.lacks(f, value)
		}
	}
}

func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%v came from YAML and is no JSON: %v", value, err))
	}
	return string(text)
}

// typed says in the words of YAML which value has another type.
func typed(values map[string]any, into *bridgeac.DPUHCPBridgeSpecApplyConfiguration) error {
	err := json.Unmarshal([]byte(inJSON(values)), into)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return finding.Mistyped(mistyped.Field, mistyped.Value, mistyped.Type)
	}
	return err
}

// name that a bridge may have, as its schema says it.
var name = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

// judge reports what the public operator takes and a bridge does not.
func (m *Move) judge(spec *bridgeac.DPUHCPBridgeSpecApplyConfiguration) {
	if !name.MatchString(m.From.Name) {
		m.find(finding.Refuse(Imported, "NameInvalid").At("metadata.name").
			Say("may have at most 40 characters a-z, 0-9 and -, a letter first, in a bridge: write another into the printed one; its hosted cluster gets that name"))
	}
	if spec.OCPReleaseImage != nil {
		m.warn(bridge.Tagged(string(*spec.OCPReleaseImage)))
	}
	if ref := spec.DPUClusterRef; ref != nil {
		m.refers("dpuClusterRef", "dpucluster", ref.Namespace, ref.Name)
	}
	if ref := spec.DPUDeploymentRef; ref != nil {
		m.refers("dpuDeploymentRef", "dpudeployment", ref.Namespace, ref.Name)
	}
	for _, image := range []struct {
		field string
		is    *dpuv1.ReleaseImage
	}{{"ocpReleaseImage", spec.OCPReleaseImage}, {"machineOSURL", spec.MachineOSImage}} {
		if image.is != nil && !valid.Image(string(*image.is)) {
			m.find(finding.Refuse(Imported, "ImageInvalid").At("spec."+image.field).
				Say("(%s) has no registry, or neither a tag nor a digest: write them into the printed bridge, e.g. quay.io/example/rhcos-bluefield:4.20.4", *image.is))
		}
	}
}

// refers reports that the owner of another namespace has to allow a reference.
func (m *Move) refers(field, kind string, namespace, name *v1alpha1.ObjectName) {
	if namespace == nil || name == nil {
		return
	}
	m.warn(refgrant.Check(refgrant.Reference{
		Field: field, Path: "spec." + field, From: m.From.Namespace, Kind: kind, Namespace: string(*namespace), Name: string(*name),
	}))
}
