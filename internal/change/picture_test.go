// Pictures of an Infra for the tests of this package: planned by internal/plan, from what its own tests read.
package change_test

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/render"
)

// read is what is observed of the Infra of a case of internal/plan.
func read(t *testing.T, name string) input.Input {
	t.Helper()
	file, err := os.Open("../plan/testdata/" + name + "/in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	objects, err := render.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return objects.Inputs(input.Settings{Image: "example.com/oooi:1", EnvoyImage: "example.com/envoy:1", ClusterDomain: "cluster.local", AllowImageOverride: true})[0]
}

// pictured is an Infra with what is planned of it. Its pods are those that another picture has.
func pictured(t *testing.T, in input.Input, before change.Picture) change.Picture {
	t.Helper()
	p := change.Picture{Infra: in.Infra, Plan: plan.Infra(in), Children: map[component.Name]workload.Child[component.Server]{}}
	for _, o := range p.Plan.Objects {
		if c, is := component.Applied(o); is {
			server := typed(t, o, c.New())
			p.Children[c.Name] = workload.Child[component.Server]{Server: server, Surroundings: surroundings(t, in, p.Plan, c.Written(server), before.Children[c.Name])}
		}
	}
	return p
}

func surroundings(t *testing.T, in input.Input, p plan.InfraPlan, written component.Written, before workload.Child[component.Server]) workload.Surroundings {
	api := corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}
	api.Namespace, api.Name = workload.APIService.Namespace, workload.APIService.Name
	s := workload.Surroundings{Settings: in.Settings, Infra: in.Infra, AllowedNamespace: in.ControlPlaneNamespace(), Services: []corev1.Service{api}}
	had := append([]workload.Instance{before.Instance}, before.Further...)
	s.Further = make([]workload.Instance, len(written.AdditionalServerIPs))
	number := 0
	s.EachInstance(func(i *workload.Instance) {
		if number < len(had) {
			*i = had[number]
		}
		i.NAD = network(t, p, workload.InstanceAttachment(written.Attachment, s.NAD, number))
		number++
	})
	return s
}

// network is the one of the plan that an instance attaches to.
func network(t *testing.T, p plan.InfraPlan, a v1alpha1.Attachment) *nad.NetworkAttachmentDefinition {
	for _, o := range p.Objects {
		if n, is := o.(*nad.ApplyConfiguration); is && *n.Name == string(a.NetworkAttachmentDefinition) {
			return typed(t, o, &nad.NetworkAttachmentDefinition{})
		}
	}
	t.Fatalf("no network %s is planned", a.NetworkAttachmentDefinition)
	return nil
}

func typed[T any](t *testing.T, o runtime.ApplyConfiguration, into T) T {
	t.Helper()
	if err := json.Unmarshal(desired.Encoded(o), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// running has each instance of a picture run what is planned of it, and serve.
func running(t *testing.T, p change.Picture) change.Picture {
	t.Helper()
	for name, child := range p.Children {
		if dhcp, is := child.Server.(*v1alpha1.DHCPServer); is { // its second instance starts once the first knows of it
			c, _ := component.Of(dhcp)
			all := c.Written(dhcp).ServerIPs()
			dhcp.Status.Instances = []v1alpha1.Instance{{IP: all[0], ServesWith: all}}
		}
		for range 3 { // the second knows which template served, the third that nothing is left to do
			planned, number := workload.Of(name, child), 0
			child.EachInstance(func(i *workload.Instance) {
				i.Running = annotations(t, planned, names.InstanceWorkload(string(name), child.Server.GetName(), number))
				i.Now = workload.Now{Serves: true, Rolled: true}
				number++
			})
		}
		p.Children[name] = child
	}
	return p
}

func annotations(t *testing.T, p workload.ChildPlan, name string) map[string]string {
	t.Helper()
	for _, o := range p.Objects {
		switch o := o.(type) {
		case *acapps.StatefulSetApplyConfiguration:
			if *o.Name == name {
				return o.Annotations
			}
		case *acapps.DeploymentApplyConfiguration:
			if *o.Name == name {
				return o.Annotations
			}
		}
	}
	t.Fatalf("no workload %s is planned: %v", name, p.Findings)
	return nil
}
