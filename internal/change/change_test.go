package change_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

const (
	newDNS   = `infraComponents: {dns: {image: "example.com/oooi:2"}}`
	newProxy = `infraComponents: {proxy: {managerImage: "example.com/oooi:2"}}`
	registry = `extraEndpoints: [{name: registry, hostnames: [registry.example.com], port: 5000, protocol: TLS, target: {service: ignition-server-proxy, namespace: clusters-c1, port: %d}}]`
)

// changes are from one specification to another, both written over the one that an Infra has.
var changes = map[string]struct {
	was, is string
	// seen is what the cluster tells of both beside that.
	seen func(before, after *change.Picture)
}{
	"nothing":                    {},
	"new":                        {seen: func(before, _ *change.Picture) { *before = change.Picture{} }},
	"image of one":               {was: "infraComponents: {dns: {replicas: 1}}", is: newDNS},
	"image of two":               {is: newDNS},
	"image of two with one idle": {is: newDNS, seen: dns(func(number int, i *workload.Instance) { i.Now.Serves, i.Now.Rolled = number == 0, number == 0 })},
	"image of none":              {is: newDNS, seen: dns(func(_ int, i *workload.Instance) { i.Running, i.Now = nil, workload.Now{} })},
	"image of both proxies":      {is: newProxy},
	"image of the only proxy":    {was: "infraComponents: {proxy: {replicas: 1}}", is: newProxy},
	"resources":                  {is: "infraComponents: {dhcp: {resources: {limits: {memory: 1Gi}}}}"},
	"off":                        {is: "infraComponents: {dns: {enabled: false}}"},
	"one instance less":          {is: "infraComponents: {dns: {replicas: 1}}"},
	"one instance more":          {was: "infraComponents: {dhcp: {replicas: 1}}", is: "infraComponents: {dhcp: {replicas: 2}}", seen: firstReports},
	"address of dhcp":            {is: "infraComponents: {dhcp: {serverIP: 192.168.100.9}}"},
	"address of a proxy":         {is: "infraComponents: {proxy: {serverIP: 192.168.100.9}}"},
	"search domains":             {was: "infraComponents: {dhcp: {leaseTime: 2h}}", is: "networkConfig: {searchDomains: [example.com]}"},
	"endpoint goes":              {was: fmt.Sprintf(registry, 443), is: "extraEndpoints: []"},
	"endpoint leads elsewhere":   {was: fmt.Sprintf(registry, 443), is: fmt.Sprintf(registry, 6443)},
	"refused":                    {is: "{networkConfig: {cidr: 192.168.200.0/24}, infraComponents: {dns: {enabled: false}}}"},
	"paused":                     {is: newDNS, seen: func(_, after *change.Picture) { after.Paused = "it has annotation paused" }},
	"no longer paused":           {is: newDNS, seen: func(before, _ *change.Picture) { before.Paused = "it has annotation paused" }},
}

// dns changes what is seen of each DNS instance, before and after.
func dns(edit func(number int, i *workload.Instance)) func(before, after *change.Picture) {
	return func(before, after *change.Picture) {
		for _, p := range []*change.Picture{before, after} {
			child, number := p.Children[component.DNS], 0
			child.EachInstance(func(i *workload.Instance) { edit(number, i); number++ })
			p.Children[component.DNS] = child
		}
	}
}

// firstReports: the first DHCP instance has reported, and has not heard of a second.
func firstReports(_, after *change.Picture) {
	status := &after.Children[component.DHCP].Server.(*v1alpha1.DHCPServer).Status
	status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted, Status: metav1.ConditionTrue}}
}

// pictures are those of an Infra before and after a change.
func pictures(t *testing.T, was, is string) (before, after change.Picture) {
	t.Helper()
	in := read(t, "pool-just-large-enough")
	NewWithT(t).Expect(yaml.Unmarshal([]byte(was), &in.Infra.Spec)).To(Succeed())
	before = running(t, pictured(t, in, change.Picture{}))
	in.Infra = in.Infra.DeepCopy()
	in.Infra.Annotations = map[string]string{names.AnnotationGiven: before.Plan.Given} // addresses that are given stay
	NewWithT(t).Expect(yaml.Unmarshal([]byte(is), &in.Infra.Spec)).To(Succeed())
	return before, pictured(t, in, before)
}

// told is a change as a person reads it in testdata: of each object the fields, whose values TestWhatIsWrittenOfAnObject looks at.
func told(t *testing.T, c change.Change) string {
	var objects []string
	for _, o := range c.Objects {
		line := fmt.Sprintf("%s %s %s/%s", o.Verb, o.Kind, o.Namespace, o.Name)
		for _, f := range o.Fields {
			line += " " + f.Path
		}
		objects = append(objects, line)
	}
	c.Objects = nil
	return golden.YAML(t, struct {
		change.Change
		Objects       []string `json:"objects,omitempty"`
		Interruptions []string `json:"interruptions,omitempty"`
	}{c, objects, c.Interruptions()})
}

func TestAChangeIs(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			before, after := pictures(t, c.was, c.is)
			if c.seen != nil {
				c.seen(&before, &after)
			}
			is := change.Between(before, after)
			NewWithT(t).Expect(is.None()).To(Equal(name == "nothing"))
			golden.Compare(t, "testdata/"+strings.ReplaceAll(name, " ", "-")+".yaml", told(t, is))
		})
	}
}

// A newer operator leaves pods as they are until somebody has their templates updated.
func TestTemplatesAreUpdated(t *testing.T) {
	g := NewWithT(t)
	before, after := pictures(t, "", "")
	for name, child := range after.Children {
		child.Settings.Image = "example.com/oooi:2"
		after.Children[name] = child
	}
	g.Expect(change.Between(before, after).Pods).To(BeEmpty())
	updated := change.Between(before, after.Updated())
	g.Expect(updated.AwaitsTurn).To(BeTrue())
	var replaced []string
	for _, p := range updated.Pods {
		replaced = append(replaced, p.Verb+" "+p.Workload)
	}
	g.Expect(replaced).To(Equal([]string{
		"replace c1-dhcp-deployment", "replace c1-dhcp-deployment-1", "replace c1-dns-deployment", "replace c1-dns-deployment-1",
		"replace c1-proxy-deployment", "replace c1-proxy-deployment-1",
	}))
	g.Expect(change.Between(before, after).Pods).To(BeEmpty(), "what the picture was made of is as it was")
}

func TestWhatIsWrittenOfAnObject(t *testing.T) {
	had := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", ResourceVersion: "1", Annotations: map[string]string{
		names.AnnotationGiven: "a", corev1.LastAppliedConfigAnnotation: "a", "example.com/owner": "a",
	}}}
	had.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "a", Port: 1}, {Name: "b", Port: 2}, {Name: "b", Port: 3}}
	has := had.DeepCopy()
	has.ResourceVersion, has.Status.Conditions = "2", []metav1.Condition{{Type: "Ready"}}
	has.Annotations[names.AnnotationGiven], has.Annotations[corev1.LastAppliedConfigAnnotation] = "b", "b"
	g := NewWithT(t)
	g.Expect(change.Written("Infra", had, has)).To(BeEmpty(), "what the API server and the operator keep says nothing new")
	g.Expect(change.Written("Infra", nil, nil)).To(BeEmpty())
	one := change.Object{Kind: "Infra", Namespace: "clusters", Name: "c1"}
	one.Verb = change.Create
	g.Expect(change.Written("Infra", nil, has)).To(ConsistOf(one))
	one.Verb = change.Delete
	g.Expect(change.Written("Infra", has, nil)).To(ConsistOf(one))
	has.Annotations["example.com/owner"] = "b"
	has.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "b", Port: 2}, {Name: "a", Port: 4}, {Name: "b", Port: 3}}
	one.Verb, one.Fields = change.Update, []change.Field{
		{Path: "metadata.annotations[example.com/owner]", From: "a", To: "b"},
		{Path: "spec.extraEndpoints[a].port", From: "1", To: "4"},
	}
	g.Expect(change.Written("Infra", had, has)).To(ConsistOf(one), "an entry of a list that only moves is the same")
}
