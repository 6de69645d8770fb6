package checkcli_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// own are the operator's CRDs.
func own() (all []*apiextensionsv1.CustomResourceDefinition) {
	crds := check.Own()
	for _, name := range slices.Sorted(maps.Keys(crds)) {
		crd := crds[name]
		all = append(all, &crd)
	}
	return all
}

// A cluster goes through what admins meet, from before the installation; each time the check says exactly what is wrong and what to do.
func TestTheCheckSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	foreign, err := envtest.Foreign()
	w.Expect(err).NotTo(HaveOccurred())

	back := w.without(own()...)
	t.Run("before", func(t *testing.T) {
		t.Run("a bare cluster", func(t *testing.T) { w.says(t, "pre-bare", asked{before: true}) })
		w.Expect(w.cluster.Install(copies(foreign)...)).To(Succeed())
		t.Run("a platform", func(t *testing.T) { w.says(t, "pre-platform", asked{before: true}) })
		t.Run("without rights", func(t *testing.T) { w.says(t, "pre-nobody", asked{before: true, as: w.as("nobody")}) })
		t.Run("with the rights that are granted, and none to escalate", w.grants)
		t.Run("not installed", func(t *testing.T) { w.says(t, "no-operator", asked{}) })
	})
	back()
	w.install()
	t.Run("healthy", func(t *testing.T) { w.says(t, "healthy", asked{}) })
	t.Run("without CRDs", func(t *testing.T) {
		back := w.without(own()...)
		w.says(t, "no-crds", asked{})
		back()
	})
	t.Run("without Multus", func(t *testing.T) {
		back := w.without(named(foreign, "network-attachment-definitions.k8s.cni.cncf.io")...)
		w.says(t, "no-multus", asked{})
		back()
	})
	w.observed()
	t.Run("an Infra", func(t *testing.T) { w.says(t, "infra", asked{}) })
	w.rights(t)
	w.skew(t)
	w.certificates(t)
	t.Run("scaled to 0", func(t *testing.T) {
		w.scale(0)
		w.says(t, "scaled-to-0", asked{})
		w.scale(2)
	})
	t.Run("as before", func(t *testing.T) { w.says(t, "infra", asked{}) })
	t.Run("of one namespace", w.ofOneNamespace)
}

// ofOneNamespace: an Infra there refers to a HostedCluster of another, whose NodePool says which nodes have the VLAN.
func (w *world) ofOneNamespace(t *testing.T) {
	g := NewWithT(t)
	for _, namespace := range []string{"tenant", "hosting"} {
		w.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "c3"}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Namespace: "hosting", Name: "c3"}
	infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: "vlan100", NetworkAttachmentNamespace: "default"}
	w.ensure(infra)
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "hosting", Name: "c3"}, Spec: hyperv1.NodePoolSpec{
		ClusterName: "c3", Replicas: ptr.To(int32(1)), Release: hyperv1.Release{Image: "release:1"}, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
		Platform: hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtNodePoolPlatform{
			NodeSelector: map[string]string{"vlan": "7"}, AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "default/vlan100"}},
			RootVolume: &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent}},
		}},
	}}
	network := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vlan100"}}
	network.Spec.Config = `{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br100"}`
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hosting", Name: "c3"}}
	hc.Spec.Platform.Type, hc.Spec.Release.Image, hc.Spec.PullSecret.Name = hyperv1.NonePlatform, "release:1", "pull"
	hc.Spec.DNS.BaseDomain, hc.Spec.Networking.NetworkType = "example.com", hyperv1.Other
	hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hc.Spec.Services = append(hc.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	for _, o := range []client.Object{network, hc, pool} {
		w.ensure(o)
	}
	steps, err := w.run(asked{only: "tenant"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(steps).To(ContainElement(And(HaveField("Name", "nodes"), HaveField("Says", "Infra tenant/c3: no Ready node has labels vlan=7, so no pod of dhcp starts"))))
	g.Expect(steps).NotTo(ContainElement(HaveField("Says", ContainSubstring("clusters/c2"))))
}

// grants: who has what the operator will have, may give it that.
func (w *world) grants(t *testing.T) {
	g := NewWithT(t)
	installs := func() []step.Step {
		steps, err := w.run(asked{before: true, as: w.as("owner", "owns")})
		g.Expect(err).NotTo(HaveOccurred())
		return steps
	}
	rights := func(outcome step.Outcome, says string) types.GomegaMatcher {
		return ContainElement(And(HaveField("Name", "install-rights"), HaveField("Outcome", outcome), HaveField("Says", ContainSubstring(says))))
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owns"}, Rules: rules(check.Installing("oooi-system"))}
	w.ensure(role)
	g.Eventually(installs).Should(rights(step.Fail, "you may not: escalate clusterroles.rbac.authorization.k8s.io"))
	w.change(role, func() { role.Rules = append(role.Rules, rules(check.Granted("oooi-system"))...) })
	g.Eventually(installs).Should(rights(step.OK, "you may create all"))
}

func rules(rights []check.Right) (all []rbacv1.PolicyRule) {
	for _, r := range rights {
		rule := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		all = append(all, rule)
	}
	return all
}

// rights: whoever may read less is told of the rest which right is missing.
func (w *world) rights(t *testing.T) {
	t.Run("without rights", func(t *testing.T) { w.says(t, "nobody", asked{as: w.as("nobody")}) })
	t.Run("with view", func(t *testing.T) { w.says(t, "view", asked{as: w.as("viewer", "system:aggregate-to-view")}) })
	t.Run("with oooi-check", func(t *testing.T) {
		page, err := os.ReadFile("../../docs/CHECK.md")
		w.Expect(err).NotTo(HaveOccurred())
		binds := regexp.MustCompile(`(?m)^kubectl (.* --user=anna)$`).FindAllSubmatch(page, -1)
		w.Expect(binds).To(HaveLen(2))
		for _, command := range binds {
			w.kubectl(strings.Fields(string(command[1]))...)
		}
		w.says(t, "infra", asked{as: w.as("anna")})
	})
	t.Run("the operator has lost its own", func(t *testing.T) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "oooi-vlan-services"}}
		var rules []rbacv1.PolicyRule
		w.change(role, func() { rules, role.Rules = role.Rules, role.Rules[1:] })
		w.says(t, "operator-rights", asked{})
		w.change(role, func() { role.Rules = rules })
	})
}

// skew: this oooi, the operator, its CRDs and its daemons are of different versions.
func (w *world) skew(t *testing.T) {
	infras := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "infras.hostedcluster.densityops.com"}}
	spec := func() map[string]apiextensionsv1.JSONSchemaProps {
		return infras.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	}
	t.Run("a stale oooi", func(t *testing.T) {
		w.change(infras, func() { spec()["colour"] = apiextensionsv1.JSONSchemaProps{Type: "string"} })
		w.says(t, "stale-cli", asked{version: "v0.0.9"})
		w.change(infras, func() { delete(spec(), "colour") })
	})
	t.Run("stale CRDs", func(t *testing.T) {
		was := apiextensionsv1.JSONSchemaProps{}
		w.change(infras, func() { was = spec()["extraEndpoints"]; delete(spec(), "extraEndpoints") })
		w.says(t, "stale-crds", asked{})
		w.change(infras, func() { spec()["extraEndpoints"] = was })
	})
	t.Run("stale daemons", func(t *testing.T) {
		d := daemon("c1-proxy-deployment", "oooi:v0.0.9")
		w.ensure(d)
		w.says(t, "stale-daemons", asked{})
		w.Expect(w.api.Delete(t.Context(), d)).To(Succeed())
	})
	t.Run("nobody leads", func(t *testing.T) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: check.LeaseName}}
		w.change(lease, func() { lease.Spec.HolderIdentity = nil })
		w.says(t, "no-leader", asked{})
		w.change(lease, func() { lease.Spec.HolderIdentity = ptr.To("oooi-controller-manager-1_a") })
	})
}

// certificates that a real TLS server shows.
func (w *world) certificates(t *testing.T) {
	host := names.Webhook + "." + system + ".svc"
	good := time.Now().Add(60*24*time.Hour + time.Hour)
	t.Run("expired", func(t *testing.T) {
		w.serve(time.Now().Add(-(3*24*time.Hour + time.Hour)))
		w.says(t, "webhook-expired", asked{})
	})
	t.Run("expired, and the next one is not served", func(t *testing.T) {
		_, next := w.pair(good, host)
		shown, last := w.pair(time.Now().Add(-(3*24*time.Hour + time.Hour)), host)
		w.served = shown
		w.trust(append(last, next...))
		w.says(t, "webhook-serves-expired", asked{})
	})
	t.Run("expires soon", func(t *testing.T) {
		w.serve(time.Now().Add(5*24*time.Hour + time.Hour))
		w.says(t, "webhook-soon", asked{})
	})
	t.Run("not trusted", func(t *testing.T) {
		w.serve(good)
		w.served, _ = w.pair(good, host)
		w.says(t, "webhook-not-trusted", asked{})
	})
	t.Run("for another name", func(t *testing.T) {
		shown, bundle := w.pair(good, "oooi-webhook.elsewhere.svc")
		w.served = shown
		w.trust(bundle)
		w.says(t, "webhook-other-name", asked{})
	})
	t.Run("at pods that do not answer", func(t *testing.T) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Webhook}}
		w.serve(good)
		w.change(service, func() {
			service.Spec = corev1.ServiceSpec{Selector: map[string]string{"serves": "webhook"}, Ports: []corev1.ServicePort{{Port: w.port}}}
		})
		starts, ends := w.pod("starts", corev1.ConditionFalse), w.pod("ends", corev1.ConditionTrue)
		others := []client.Object{w.pod("serves-1", corev1.ConditionTrue), w.pod("serves-2", corev1.ConditionTrue)}
		w.Expect(w.api.Delete(t.Context(), ends)).To(Succeed())
		w.says(t, "webhook-pods-silent", asked{})
		w.change(ends, func() { ends.SetFinalizers(nil) })
		for _, o := range append(others, starts) {
			w.change(o, func() { o.SetFinalizers(nil) })
			w.Expect(w.api.Delete(t.Context(), o)).To(Succeed())
		}
		w.outside()
	})
	t.Run("without a caBundle", func(t *testing.T) {
		w.trust(nil)
		w.says(t, "webhook-no-bundle", asked{})
	})
	t.Run("without a configuration", func(t *testing.T) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.Webhook}}
		w.Expect(w.api.Delete(t.Context(), configuration)).To(Succeed())
		w.says(t, "webhook-gone", asked{})
		w.install()
	})
}

// pod is one of the webhook's Service, of the operator's Deployment, on no node. A finalizer keeps it while it ends.
func (w *world) pod(name string, ready corev1.ConditionStatus) client.Object {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.Expect(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: system, Name: "oooi-controller-manager"}, d)).To(Succeed())
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{"serves": "webhook"}, Finalizers: []string{"example.com/stays"}},
		Spec:       d.Spec.Template.Spec,
	}
	w.Expect(w.api.Create(w.t.Context(), p)).To(Succeed())
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	w.Expect(w.api.Status().Update(w.t.Context(), p)).To(Succeed())
	return p
}

func named(all []*apiextensionsv1.CustomResourceDefinition, name string) []*apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == name })
	return all[i : i+1]
}

// daemon is a workload as the operator makes it.
func daemon(name, image string) *appsv1.Deployment {
	labels := map[string]string{names.LabelManagedBy: names.ManagedBy, "app": "proxy"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: image}}},
		}},
	}
}

// observed makes a node, a workload, and two Infras, of which one is not Ready, with the status that the operator would write.
func (w *world) observed() {
	w.t.Helper()
	w.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}})
	w.ensure(daemon("c0-proxy-deployment", "oooi:v0.1.0"))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
	w.ensure(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.Expect(w.api.Status().Update(w.t.Context(), node)).To(Succeed())
	w.change(node, func() { node.Spec.Taints = nil }) // which the API server adds to a new one
	for name, ready := range map[string]metav1.Condition{
		"c1": {Status: metav1.ConditionTrue, Reason: "Serving", Message: "workers can join"},
		"c2": {Status: metav1.ConditionFalse, Reason: "BackendsUnhealthy", Message: "service clusters-c2/ignition-server-proxy has no ready pod"},
	} {
		infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
		infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: v1alpha1.ObjectName(name)}
		infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: "vlan100", NetworkAttachmentNamespace: "default"}
		w.ensure(infra)
		ready.Type, ready.ObservedGeneration, ready.LastTransitionTime = v1alpha1.ConditionReady, infra.Generation, metav1.Now()
		infra.Status.Conditions = []metav1.Condition{ready}
		w.Expect(w.api.Status().Update(w.t.Context(), infra)).To(Succeed())
	}
}
