package bridgecli_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

func made(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func TestWhatABridgesDPUsDependOnIsRead(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	cluster := envtest.For(t, false)
	as := func(config *rest.Config) client.Client {
		api, err := client.New(config, client.Options{Scheme: controller.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		return api
	}
	api := as(cluster.Admin)
	for _, name := range []string{"node2-bf3", "node1-bf3", "of-another"} {
		of := map[string]string{"of-another": "c2"}[name]
		if of == "" {
			of = "c1"
		}
		g.Expect(api.Create(ctx, made(dpuKind, name, map[string]any{"dpuNodeName": "n", "dpuDeviceName": "d", "serialNumber": "s", "bfb": "rhcos", "dpuFlavor": "ovn", "nodeEffect": map[string]any{"drain": true}, "cluster": map[string]any{"name": of, "namespace": "default"}}))).To(Succeed())
	}
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dpu1", UID: "u1"}, Spec: dpuv1.DPUHCPBridgeSpec{DPUClusterRef: dpuv1.DPUClusterReference{Name: "c1"}}}
	see := func(api client.Reader) bridgecli.Seen {
		seen, err := bridgecli.See(ctx, api, b)
		g.Expect(err).NotTo(HaveOccurred())
		return seen
	}

	seen := see(api)
	g.Expect(seen.DPUs).To(HaveExactElements(HaveField("Name", "node1-bf3"), HaveField("Name", "node2-bf3")))
	g.Expect(seen.DPUs[0].Spec).To(And(HaveField("BFB", "rhcos"), HaveField("DPUFlavor", "ovn")))
	g.Expect(seen.Facts.Configs).To(BeEmpty())

	registry := map[string]any{"address": "http://192.0.2.1", "loadBalancerAddress": "https://192.0.2.2"}
	g.Expect(api.Create(ctx, made(configKind, "dpf", map[string]any{
		"deploymentMode": dpf.ModeZeroTrust, "networking": map[string]any{"highSpeedMTU": int64(9000)},
		"provisioningController": map[string]any{
			"enableDynamicBFCFGTemplates": true, "registry": registry, "installInterface": map[string]any{"installViaRedfish": map[string]any{"bfbRegistryAddress": "192.0.2.3:80"}},
		},
	}))).To(Succeed())
	g.Expect(api.Create(ctx, made(flavorKind, "ovn", nil))).To(Succeed())
	at := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	for name, label := range map[string]string{"c1": "true", "c2": "true", "none": "false"} {
		g.Expect(api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{dpf.LabelTemplate: label}, Annotations: dpf.TemplateOf(at(name), at("rhcos"), at("ovn"))},
			Data:       map[string]string{dpf.TemplateKey: "text"},
		})).To(Succeed())
	}
	now := time.Now().Truncate(time.Second)
	for name, n := range map[string]approve.Notice{
		"approval": {Name: "csr-1", Host: "node1-bf3", Message: "all rules hold"},
		"warning":  {Name: "csr-2", Host: "node2-bf3", Warning: true, Message: "certificate request csr-2 is not approved: Node node2-bf3 exists"},
	} {
		kind := map[bool]string{true: corev1.EventTypeWarning, false: corev1.EventTypeNormal}[n.Warning]
		g.Expect(api.Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, EventTime: metav1.NewMicroTime(now), Type: kind, Reason: "Told", Action: "Approve", Note: n.Note(),
			ReportingController: "test", ReportingInstance: "test", Regarding: corev1.ObjectReference{Namespace: "default", Name: "dpu1", UID: b.UID},
			Related: &corev1.ObjectReference{Kind: "CertificateSigningRequest", Name: n.Name},
		})).To(Succeed())
	}
	seen = see(api)
	g.Expect(seen.NotRead).To(BeEmpty())
	g.Expect(seen.Facts.Configs).To(HaveExactElements(HaveField("Spec", dpf.OperatorConfigSpec{
		DeploymentMode: dpf.ModeZeroTrust, Networking: dpf.Networking{HighSpeedMTU: 9000}, ProvisioningController: dpf.ProvisioningController{
			EnableDynamicBFCFGTemplates: true, Registry: dpf.Registry{Address: "http://192.0.2.1", LoadBalancerAddress: "https://192.0.2.2"},
			InstallInterface: dpf.Install{InstallViaRedfish: dpf.Redfish{BFBRegistryAddress: "192.0.2.3:80"}},
		},
	})), "none of what is read is pruned by the API server")
	g.Expect(seen.Facts.Flavors).To(HaveExactElements(HaveField("Name", "ovn")))
	hasText := HaveField("Data", HaveKeyWithValue(dpf.TemplateKey, "text"))
	g.Expect(seen.Facts.Templates).To(HaveExactElements(And(HaveField("Name", "c1"), hasText), And(HaveField("Name", "c2"), Not(hasText))), "only what may be too large is read as a whole")
	g.Expect(seen.Approved).To(HaveLen(1))
	g.Expect(seen.Approved["node1-bf3"]).To(BeTemporally("==", now))

	unchecked := made(flavorKind, "ovn", nil)
	g.Expect(api.Patch(ctx, unchecked, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+dpf.AnnotationSkipSizeCheck+`":""}}}`)))).To(Succeed())
	g.Expect(see(api).Facts.Templates).To(HaveExactElements(Not(hasText), Not(hasText)), "DPF does not check the size for this flavor")
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "ovn"}
	ahead := func(api client.Reader) bridgecli.Seen {
		seen, err := bridgecli.SeeAhead(ctx, api, b, bridgecli.Seen{})
		g.Expect(err).NotTo(HaveOccurred())
		return seen
	}
	port := map[string]any{"serviceInterface": map[string]any{"matchLabels": map[string]any{"a": "b"}}}
	chains := map[string]any{"switches": []any{map[string]any{"ports": []any{port}}}}
	for _, name := range []string{"ovn", "other"} {
		g.Expect(api.Create(ctx, made(deploymentKind, name, map[string]any{"dpus": map[string]any{"bfb": "rhcos", "flavor": name}, "services": map[string]any{}, "serviceChains": chains}))).To(Succeed())
	}
	g.Expect(api.Create(ctx, made(nodeKind, "node1", map[string]any{"dpus": []any{map[string]any{"name": "bf3"}}}))).To(Succeed())
	facts := ahead(api).Facts
	g.Expect(ahead(api).NotRead).To(BeEmpty())
	g.Expect(facts.Deployment).To(HaveField("Spec.DPUs.Flavor", "ovn"))
	g.Expect(facts.Nodes).To(HaveExactElements(HaveField("Spec.DPUs", HaveExactElements(dpf.DPUReference{Name: "bf3"}))))

	nobody := rest.CopyConfig(cluster.Admin)
	nobody.Impersonate.UserName = "nobody"
	g.Expect(see(as(nobody)).NotRead).To(HaveExactElements(
		"DPUs: you may not list them", "DPUFlavors: you may not list them", "DPFOperatorConfigs: you may not list them", "Events: you may not list them"))
}

var (
	dpuKind    = dpf.GroupVersion.WithKind("DPU")
	flavorKind = dpf.GroupVersion.WithKind("DPUFlavor")
	configKind = dpf.OperatorGroupVersion.WithKind("DPFOperatorConfig")
	nodeKind   = dpf.GroupVersion.WithKind("DPUNode")

	deploymentKind = dpf.ServiceGroupVersion.WithKind("DPUDeployment")
)
