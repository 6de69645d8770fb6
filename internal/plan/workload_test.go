package plan_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// aChild is a case of testdata/workload: the child, its NAD, and its Infra if it has one.
type aChild struct {
	dhcp  workload.Child[*v1alpha1.DHCPServer]
	dns   workload.Child[*v1alpha1.DNSServer]
	proxy workload.Child[*v1alpha1.ProxyServer]
}

func childOf(t testing.TB, name string) aChild {
	t.Helper()
	c := aChild{}
	c.dhcp.Settings = settings()
	c.dhcp.Settings.MetricsNamespaces = []string{"monitoring"}
	for _, o := range load(t, filepath.Join("testdata/workload", name, "in.yaml")) {
		switch o := o.(type) {
		case *v1alpha1.DHCPServer:
			c.dhcp.Server = o
		case *v1alpha1.DNSServer:
			c.dns.Server = o
		case *v1alpha1.ProxyServer:
			c.proxy.Server = o
		case *v1alpha1.Infra:
			c.dhcp.Infra, c.dhcp.AllowedNamespace = o, o.Namespace+"-"+o.Name
		case *nad.NetworkAttachmentDefinition:
			c.dhcp.NAD = o
		case *corev1.Service:
			c.dhcp.Services = append(c.dhcp.Services, *o)
		case *discoveryv1.EndpointSlice:
			c.dhcp.EndpointSlices = append(c.dhcp.EndpointSlices, *o)
		}
	}
	if c.dhcp.Server != nil {
		c.dhcp.AllowedNamespace = string(c.dhcp.Server.Spec.VMNamespace)
	}
	for _, o := range load(t, "testdata/api.yaml") {
		c.dhcp.Services = append(c.dhcp.Services, *o.(*corev1.Service))
	}
	c.dns.Services, c.proxy.Services, c.dns.EndpointSlices, c.proxy.EndpointSlices = c.dhcp.Services, c.dhcp.Services, c.dhcp.EndpointSlices, c.dhcp.EndpointSlices
	c.dns.Settings, c.dns.NAD, c.dns.Infra, c.dns.AllowedNamespace = c.dhcp.Settings, c.dhcp.NAD, c.dhcp.Infra, c.dhcp.AllowedNamespace
	c.proxy.Settings, c.proxy.NAD, c.proxy.Infra, c.proxy.AllowedNamespace = c.dhcp.Settings, c.dhcp.NAD, c.dhcp.Infra, c.dhcp.AllowedNamespace
	return c
}

func (c aChild) plan() workload.ChildPlan {
	switch {
	case c.dhcp.Server != nil:
		return workload.DHCP(c.dhcp)
	case c.dns.Server != nil:
		return workload.DNS(c.dns)
	}
	return workload.Proxy(c.proxy)
}

func TestAChildBecomes(t *testing.T) {
	golden.Cases(t, "testdata/workload", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		p := childOf(t, filepath.Base(dir)).plan()
		if p.Frozen || len(p.Findings) > 0 {
			t.Fatalf("findings: %v", p.Findings)
		}
		var out []string
		for _, o := range p.Objects {
			out = append(out, golden.YAML(t, withoutTemplateTwice(t, o)))
		}
		return map[string]string{"out.yaml": strings.Join(out, "---\n")}
	})
}

// withoutTemplateTwice removes the template from a workload's annotations, after checking that it equals the workload's.
func withoutTemplateTwice(t *testing.T, o runtime.ApplyConfiguration) any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(golden.YAML(t, o)), &object); err != nil {
		t.Fatal(err)
	}
	annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
	if text, ok := annotations[names.AnnotationTemplate].(string); ok {
		NewWithT(t).Expect(text).To(MatchJSON(encoded(t, object["spec"].(map[string]any)["template"])))
		delete(annotations, names.AnnotationTemplate)
	}
	return object
}

// template is a plan's pod template as the API server returns it, and the workload's annotations.
func template(t testing.TB, p workload.ChildPlan) (corev1.PodTemplateSpec, map[string]string) {
	t.Helper()
	var found *accore.PodTemplateSpecApplyConfiguration
	var annotations map[string]string
	for _, o := range p.Objects {
		switch w := o.(type) {
		case *acapps.StatefulSetApplyConfiguration:
			found, annotations = w.Spec.Template, w.Annotations
		case *acapps.DeploymentApplyConfiguration:
			found, annotations = w.Spec.Template, w.Annotations
		}
	}
	var out corev1.PodTemplateSpec
	text, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || found == nil {
		t.Fatalf("no pod template: %v", err)
	}
	return out, annotations
}

func TestAChildIsHeldWhenItMayNotOrCannot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*aChild)
		says   string
	}{
		"an image of its own":             {func(c *aChild) { c.proxy.Server.Spec.ManagerImage = "example.com/evil" }, "ImageOverrideNotAllowed"},
		"a NAD of a stranger":             {func(c *aChild) { c.proxy.Server.Spec.NetworkConfig.NetworkAttachmentNamespace = "stranger" }, "RefNotPermitted"},
		"a backend of a stranger":         {func(c *aChild) { c.proxy.Server.Spec.Backends[0].TargetNamespace = "stranger" }, "RefNotPermitted"},
		"an Infra that lends nothing":     {func(c *aChild) { c.proxy.AllowedNamespace = "" }, "RefNotPermitted"},
		"a NAD that is not there":         {func(c *aChild) { c.proxy.NAD = nil }, "NADNotFound"},
		"a stranger's namespace, unnamed": {func(c *aChild) { c.proxy.AllowedNamespace = ""; c.proxy.Namespaces = []corev1.Namespace{{}} }, "RefNotPermitted"},
	} {
		t.Run(name, func(t *testing.T) {
			child := childOf(t, "proxy")
			c.change(&child)
			p := child.plan()
			g := NewWithT(t)
			g.Expect(p.Frozen).To(BeTrue())
			g.Expect(p.Objects).To(BeEmpty())
			g.Expect(p.Findings).To(ContainElement(And(HaveField("Condition", v1alpha1.ConditionAccepted), HaveField("Reason", c.says))))
		})
	}
}

func TestANamespaceMayAdmitAChildsBackend(t *testing.T) {
	c := childOf(t, "proxy")
	c.proxy.Server.Spec.Backends[0].TargetNamespace = "stranger"
	stranger := corev1.Namespace{}
	stranger.Name, stranger.Annotations = "stranger", map[string]string{names.AnnotationAllowedNamespaces: "clusters"}
	c.proxy.Namespaces = []corev1.Namespace{stranger}
	NewWithT(t).Expect(c.plan().Frozen).To(BeFalse())
}

func TestAProxyReachesOnlyAddressesThatTheAdministratorAdmits(t *testing.T) {
	for target, frozen := range map[string]bool{
		"10.20.0.5:443":          false,
		"[::ffff:10.20.0.5]:443": false,
		"10.21.0.5:443":          true,
		"169.254.169.254:80":     true,
		"127.0.0.1:2379":         true,
		"10.20.0.500:443":        true,
	} {
		for _, name := range []string{"proxy", "proxy-alone"} {
			c := childOf(t, name)
			b := &c.proxy.Server.Spec.Backends[0]
			b.TargetService, b.TargetPort, b.TargetNamespace, b.TargetAddresses = "", 0, "", []string{"10.20.0.4:443", target}
			p := c.plan()
			g := NewWithT(t)
			g.Expect(p.Frozen).To(Equal(frozen), "%s: %s", name, target)
			if frozen {
				g.Expect(p.Findings).To(ConsistOf(And(HaveField("Reason", "AddressNotAllowed"), HaveField("Message", And(
					ContainSubstring("backends["+b.Name+"].targetAddresses has "+target+","), ContainSubstring("ask the administrator"))))))
			}
		}
	}
}

// *.apps is on the VLAN, so an Infra's proxy may reach addresses there; a proxy without an Infra may not.
func TestAnInfrasProxyReachesItsVLAN(t *testing.T) {
	for name, frozen := range map[string]bool{"proxy": false, "proxy-alone": true} {
		c := childOf(t, name)
		b := &c.proxy.Server.Spec.Backends[0]
		b.TargetService, b.TargetPort, b.TargetNamespace, b.TargetAddresses = "", 0, "", []string{"192.168.100.200:443"}
		NewWithT(t).Expect(c.plan().Frozen).To(Equal(frozen), name)
	}
}

// The user who writes an Infra sets its CIDR. That must not open the management cluster's networks, nor one that the pod is not on.
func TestAnInfraOpensNoNetworkByCallingItItsVLAN(t *testing.T) {
	for name, c := range map[string]struct {
		cidr   v1alpha1.Subnet
		at     v1alpha1.IPAddress
		target string
	}{
		"a network that the pod is not on":     {"10.21.0.0/16", "192.168.100.4", "10.21.0.5:6443"},
		"the pods' network":                    {"10.128.0.0/14", "10.128.0.4", "10.128.0.5:6443"},
		"the Services' network":                {"172.30.0.0/16", "172.30.0.4", "172.30.0.1:443"},
		"a network that has one of them in it": {"10.0.0.0/8", "10.99.0.4", "10.99.0.5:443"},
	} {
		t.Run(name, func(t *testing.T) {
			g, child := NewWithT(t), childOf(t, "proxy")
			leads(v1alpha1.ProxyBackend{TargetAddresses: []string{c.target}})(&child)
			child.proxy.Infra.Spec.NetworkConfig.CIDR, child.proxy.Server.Spec.NetworkConfig.ServerIP = c.cidr, c.at
			p := child.plan()
			g.Expect(p.Frozen).To(BeTrue())
			g.Expect(p.Findings).To(ConsistOf(HaveField("Reason", "AddressNotAllowed")))
		})
	}
}

// All rights of a daemon are in Roles of its own namespace; only an Infra's plan gives rights in others.
func TestAChildWritesOnlyInItsNamespace(t *testing.T) {
	for _, name := range []string{"dhcp", "dns", "proxy", "proxy-alone"} {
		for _, o := range childOf(t, name).plan().Objects {
			namespaced := o.(interface{ GetNamespace() *string })
			NewWithT(t).Expect(namespaced.GetNamespace()).To(HaveValue(BeElementOf("clusters", "site")), "%T", o)
		}
	}
}

func TestEveryContainerHasRequestsAndLimits(t *testing.T) {
	for _, name := range []string{"dhcp", "proxy"} {
		pods, _ := template(t, childOf(t, name).plan())
		for _, c := range slices.Concat(pods.Spec.InitContainers, pods.Spec.Containers) {
			NewWithT(t).Expect(c.Resources.Requests).To(HaveLen(2), c.Name)
			NewWithT(t).Expect(c.Resources.Limits).To(HaveLen(2), c.Name)
		}
	}
}

func TestEveryPodNamesThePullSecrets(t *testing.T) {
	for _, name := range []string{"dhcp", "dns", "proxy"} {
		c := childOf(t, name)
		for _, s := range []*input.Settings{&c.dhcp.Settings, &c.dns.Settings, &c.proxy.Settings} {
			s.ImagePullSecrets = []string{"mirror", "site"}
		}
		pods, _ := template(t, c.plan())
		NewWithT(t).Expect(pods.Spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "mirror"}, {Name: "site"}}), name)
	}
}

// The containers that parse input from guests (Envoy, DHCP, DNS) have no token. In each pod one other container has it, as the API server
// would mount it (names and paths: kubernetes, plugin/pkg/admission/serviceaccount/admission.go).
func TestNoTokenIsWhereGuestsAreHeard(t *testing.T) {
	for name, guardian := range map[string]string{"dhcp": "api-proxy", "dns": "api-proxy", "proxy": "proxy", "proxy-alone": "proxy"} {
		g := NewWithT(t)
		pods, _ := template(t, childOf(t, name).plan())
		g.Expect(pods.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()), name)
		g.Expect(pods.Spec.ShareProcessNamespace).To(BeNil(), name)
		tokens := map[string]bool{}
		for _, v := range pods.Spec.Volumes {
			tokens[v.Name] = v.Secret != nil || v.Projected != nil
		}
		at := map[string][]string{}
		for _, c := range slices.Concat(pods.Spec.InitContainers, pods.Spec.Containers) {
			for _, m := range c.VolumeMounts {
				if tokens[m.Name] {
					at[c.Name] = append(at[c.Name], m.MountPath)
				}
			}
		}
		g.Expect(at).To(Equal(map[string][]string{guardian: {"/var/run/secrets/kubernetes.io/serviceaccount"}}), name)
	}
}

// If the requests of the daemon equal its limits, the pod has QoS class Guaranteed, whatever its other containers are.
func TestAPodThatWasGuaranteedStaysSo(t *testing.T) {
	equal := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	for name, c := range map[string]struct {
		written *corev1.ResourceRequirements
		want    corev1.PodQOSClass
	}{
		"nothing written": {nil, corev1.PodQOSBurstable},
		"equal":           {&corev1.ResourceRequirements{Requests: equal, Limits: equal}, corev1.PodQOSGuaranteed},
		"limits only":     {&corev1.ResourceRequirements{Limits: equal}, corev1.PodQOSGuaranteed},
		"less memory":     {&corev1.ResourceRequirements{Limits: equal, Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}, corev1.PodQOSBurstable},
	} {
		of := childOf(t, "dns")
		of.dns.Server.Spec.Resources = c.written
		pods, _ := template(t, of.plan())
		class := corev1.PodQOSGuaranteed
		for _, container := range pods.Spec.Containers {
			for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := container.Resources.Limits[r]
				request, requested := container.Resources.Requests[r]
				if !limited || requested && request.Cmp(limit) != 0 {
					class = corev1.PodQOSBurstable
				}
			}
		}
		NewWithT(t).Expect(class).To(Equal(c.want), name)
	}
}

// Planning does not change its input, and the same input gives the same bytes.
func TestPlanningAChildChangesNothing(t *testing.T) {
	for _, name := range []string{"dhcp", "dns", "proxy"} {
		c := childOf(t, name)
		before, _ := json.Marshal([]any{c.dhcp, c.dns, c.proxy})
		first, second := encoded(t, c.plan().Objects), encoded(t, c.plan().Objects)
		after, _ := json.Marshal([]any{c.dhcp, c.dns, c.proxy})
		NewWithT(t).Expect(first).To(Equal(second))
		NewWithT(t).Expect(string(after)).To(Equal(string(before)))
	}
}

func encoded(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
