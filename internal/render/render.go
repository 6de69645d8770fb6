package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Rendering is what comes of one Infra: its children, and what comes of these.
type Rendering struct {
	Infra    *v1alpha1.Infra
	Frozen   bool
	Objects  []runtime.ApplyConfiguration
	Findings []finding.Finding
}

// Render plans every Infra of the files, and those that HostedClusters' annotations ask for.
func (o Objects) Render(settings input.Settings) []Rendering {
	o, made, all := o.Provisioned(settings)
	for _, in := range o.Inputs(settings) {
		p, r := plan.Infra(in), made[in.Infra]
		r.Infra, r.Frozen, r.Objects, r.Findings = in.Infra, p.Frozen, append(r.Objects, p.Objects...), append(r.Findings, p.Findings...)
		for _, child := range p.Objects {
			became := o.child(in, p, child)
			r.Objects = append(r.Objects, became.Objects...)
			r.Findings = append(r.Findings, became.Findings...)
			r.Frozen = r.Frozen || became.Frozen
		}
		all = append(all, r)
	}
	return all
}

// Provisioned adds the Infras that annotations ask for, each with the beginning of its Rendering, and returns as frozen those that cannot
// be made. An Infra in the files is left as it is; its Rendering begins with the findings of its HostedCluster.
func (o Objects) Provisioned(settings input.Settings) (whole Objects, made map[*v1alpha1.Infra]Rendering, frozen []Rendering) {
	whole, made = slices.Clone(o), map[*v1alpha1.Infra]Rendering{}
	for _, hc := range pick[hyperv1.HostedCluster](o, "") {
		in := whole.provisioning(hc, settings) // the next one sees the VLAN's subnet in an Infra made here
		p := provision.Of(in)
		switch {
		case p.Release: // its findings are about what a cluster has done
		case in.Infra != nil:
			made[in.Infra] = Rendering{Infra: in.Infra, Findings: p.Findings}
		case p.Infra != nil:
			infra := typed[v1alpha1.Infra](p.Infra)
			whole = append(whole, infra)
			made[infra] = Rendering{Infra: infra, Objects: []runtime.ApplyConfiguration{p.Infra}, Findings: p.Findings}
		case len(p.Findings) > 0:
			missing := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: in.HostedCluster.Namespace, Name: in.HostedCluster.Name}}
			frozen = append(frozen, Rendering{Infra: missing, Frozen: true, Findings: p.Findings})
		}
	}
	return whole, made, frozen
}

// child plans the workload of one child, as its controller does after the child is applied.
func (o Objects) child(in input.Input, p plan.InfraPlan, child runtime.ApplyConfiguration) workload.ChildPlan {
	c, is := component.Applied(child)
	if !is {
		return workload.ChildPlan{}
	}
	server := c.New()
	read(child, server)
	written := c.Written(server)
	first := workload.Instance{NAD: o.attachedTo(p, written.Attachment)}
	var further []workload.Instance
	for i := range written.AdditionalServerIPs {
		further = append(further, workload.Instance{NAD: o.attachedTo(p, workload.InstanceAttachment(written.Attachment, first.NAD, i+1))})
	}
	return workload.Of(c.Name, workload.Child[component.Server]{Server: server, Surroundings: workload.Surroundings{
		Settings: in.Settings, Instance: first, Further: further, Infra: in.Infra,
		AllowedNamespace: in.ControlPlaneNamespace(), Namespaces: in.Namespaces, Services: o.services(), EndpointSlices: values(pick[discoveryv1.EndpointSlice](o, "")),
	}})
}

// services are those of the files. If the API server's own is not among them, its endpoints are assumed to listen where OpenShift's do;
// only the cluster knows its address.
func (o Objects) services() []corev1.Service {
	all := values(pick[corev1.Service](o, ""))
	if find[corev1.Service](o, workload.APIService) == nil {
		api := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: workload.APIService.Namespace, Name: workload.APIService.Name}}
		api.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(6443)}}
		all = append(all, api)
	}
	return all
}

// attachedTo is the network that the plan derives, or else one of the files.
func (o Objects) attachedTo(p plan.InfraPlan, a v1alpha1.Attachment) *nad.NetworkAttachmentDefinition {
	for _, object := range p.Objects {
		derived, ok := object.(*nad.ApplyConfiguration)
		if ok && *derived.Name == string(a.NetworkAttachmentDefinition) && *derived.Namespace == string(a.NetworkAttachmentNamespace) {
			return typed[nad.NetworkAttachmentDefinition](derived)
		}
	}
	return find[nad.NetworkAttachmentDefinition](o, named(string(a.NetworkAttachmentNamespace), string(a.NetworkAttachmentDefinition)))
}

// typed converts an applied object to the type that readers use.
func typed[T any](applied runtime.ApplyConfiguration) *T {
	out := new(T)
	read(applied, out)
	return out
}

func read(applied runtime.ApplyConfiguration, into any) {
	text, err := json.Marshal(applied)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(fmt.Sprintf("%T does not become %T: %v", applied, into, err)) // both are generated from one type
	}
}

// YAML writes one document per object.
func YAML(to io.Writer, objects []runtime.ApplyConfiguration) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes one List, whose items are a list though there are none.
func JSON(to io.Writer, objects []runtime.ApplyConfiguration) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		APIVersion string                       `json:"apiVersion"`
		Kind       string                       `json:"kind"`
		Items      []runtime.ApplyConfiguration `json:"items"`
	}{"v1", "List", append([]runtime.ApplyConfiguration{}, objects...)})
}
