package controller_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/render"
)

// TestRenderPrintsWhatTheOperatorApplies gives both the same text (issue 3): the cluster then has the same objects, with all that render
// printed. What only a cluster knows, such as a Service's address, render cannot print.
func TestRenderPrintsWhatTheOperatorApplies(t *testing.T) {
	t.Parallel() // otherwise all parallel tests would wait for its subtests
	const loadBalancer, ipEndpoint = "servicePublishingStrategy: {type: LoadBalancer}", "controlPlaneEndpoint: {host: 203.0.113.10, port: 6443}"
	for name, edits := range map[string][]string{
		"a LoadBalancer with an IP endpoint": nil,
		"a LoadBalancer with a name": {
			loadBalancer, "servicePublishingStrategy: {type: LoadBalancer, loadBalancer: {hostname: api.c1.example.com}}",
			ipEndpoint, "controlPlaneEndpoint: {host: api.c1.example.com, port: 6443}",
		},
		"a Route with an IP endpoint": {
			loadBalancer, "servicePublishingStrategy: {type: Route, route: {hostname: api.c1.example.com}}",
			ipEndpoint, "controlPlaneEndpoint: {host: 203.0.113.10, port: 443}",
		},
		"a network that assigns addresses": {`"vlan":100}`, `"vlan":100,"ipam":{"type":"whereabouts","range":"192.168.100.0/24","range_start":"192.168.100.1","range_end":"192.168.100.20"}}`},
		"an Infra with much written": {"infraComponents: {}", `infraComponents:
    dhcp: {rangeStart: 192.168.100.8, rangeEnd: 192.168.100.99, leaseTime: 1h, reservations: [{ip: 192.168.100.50, mac: "52:54:00:00:00:01"}]}
    dns: {serverIP: 192.168.100.3, priorityClassName: high}
    proxy: {tolerations: [{key: infra, operator: Exists}], resources: {requests: {cpu: 100m}}}`},
		"an Infra without DHCP": {"infraComponents: {}", "infraComponents: {dhcp: {enabled: false}}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text := w.hosted("c1") + fmt.Sprintf(infraYAML, w.ns)
			for edit := range slices.Chunk(edits, 2) {
				w.Expect(text).To(ContainSubstring(edit[0]))
				text = strings.Replace(text, edit[0], edit[1], 1)
			}
			w.puts(text)
			w.has(w.rendered(text))
		})
	}
}

// itsAPI is how the cluster's own API is reached; without it render assumes OpenShift's.
func (w *world) itsAPI() (text string) {
	w.t.Helper()
	s := &corev1.Service{}
	w.Expect(w.api.Get(w.ctx, workload.APIService, s)).To(Succeed())
	all := &discoveryv1.EndpointSliceList{}
	w.Expect(w.api.List(w.ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.Name})).To(Succeed())
	w.Expect(all.Items).NotTo(BeEmpty())
	s.APIVersion, s.Kind = "v1", "Service" // the client clears them
	objects := []runtime.Object{s}
	for i := range all.Items {
		all.Items[i].APIVersion, all.Items[i].Kind = "discovery.k8s.io/v1", "EndpointSlice"
		objects = append(objects, &all.Items[i])
	}
	for _, o := range objects {
		one, err := yaml.Marshal(o)
		w.Expect(err).NotTo(HaveOccurred())
		text += "---\n" + string(one)
	}
	return text
}

const infraYAML = `
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: %s}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: c1-vlan}
  infraComponents: {}
`

func (w *world) rendered(text string) []unstructured.Unstructured {
	w.t.Helper()
	objects, err := render.Read(strings.NewReader(text + "\n" + w.itsAPI()))
	w.Expect(err).NotTo(HaveOccurred())
	var planned []runtime.ApplyConfiguration
	for _, r := range objects.Render(w.settings) {
		w.Expect(r.Frozen).To(BeFalse(), "%v", r.Findings)
		planned = append(planned, r.Objects...)
	}
	var printed bytes.Buffer
	w.Expect(render.JSON(&printed, planned)).To(Succeed())
	list := &unstructured.UnstructuredList{}
	w.Expect(list.UnmarshalJSON(printed.Bytes())).To(Succeed())
	return list.Items
}

// has checks that this world's Infra has exactly these objects, with all their fields.
func (w *world) has(want []unstructured.Unstructured) {
	w.t.Helper()
	var ids []string
	for _, o := range want {
		ids = append(ids, o.GetKind()+" "+client.ObjectKeyFromObject(&o).String())
	}
	w.Eventually(func() []string { return w.inventory("c1") }).Should(ConsistOf(ids))
	w.silent()
	w.Expect(w.inventory("c1")).To(ConsistOf(ids))
	for i, o := range want {
		live := o.DeepCopy()
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		w.bornOf(&o)
		w.Expect(lacks("", o.Object, live.Object)).To(BeEmpty(), ids[i])
	}
}

// bornOf gives a printed object its owner's UID, which only the cluster knows.
func (w *world) bornOf(printed *unstructured.Unstructured) {
	w.t.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion("hostedcluster.densityops.com/v1alpha1")
	owner.SetKind("Infra")
	key := client.ObjectKey{Namespace: w.ns, Name: "c1"}
	refs := printed.GetOwnerReferences()
	if len(refs) > 0 {
		owner.SetKind(refs[0].Kind)
		key.Name = refs[0].Name
	}
	w.Expect(w.api.Get(w.ctx, key, owner)).To(Succeed())
	for i := range refs {
		refs[i].UID = owner.GetUID()
	}
	printed.SetOwnerReferences(refs)
	labels := printed.GetLabels()
	labels[names.LabelOwnerUID] = string(owner.GetUID())
	printed.SetLabels(labels)
}

// lacks lists where a value differs from the wanted one; further fields may be the API server's.
func lacks(path string, want, have any) (all []string) {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for name, value := range w {
			all = append(all, lacks(path+"."+name, value, h[name])...)
		}
		return all
	case []any:
		h, _ := have.([]any)
		if len(h) != len(w) {
			break
		}
		for i := range w {
			all = append(all, lacks(fmt.Sprintf("%s[%d]", path, i), w[i], h[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(want, have) {
		all = append(all, fmt.Sprintf("%s is %v, render prints %v", path, have, want))
	}
	return all
}
