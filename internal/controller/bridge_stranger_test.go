package controller_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
)

const (
	theirBridge = "orchid-b1"                                              // its control-plane namespace is also that of a b1 in a namespace that ends in -orchid
	deadUID     = "of-an-earlier-life"                                     // of no bridge: a bridge takes over an object with this UID and its name (a restore)
	thirdParty  = "198.51.100.7"                                           // the address of a Service, not allowed to bridges
	lookedUp    = "quay.io/openshift-release-dev/ocp-release:4.20.6-multi" // its image is in no mapping

	privilegedBinding = "dpf-system-scc-privileged"

	reached = "s" // of strangers' namespaces the one whose hosted API's name is in the tests' certificate
)

// ofTheVictim are words that only messages about the victim contain.
var ofTheVictim = []string{"orchid", "tulip", "rose", "lily", "thorn"}

// victim has a working bridge: HostedCluster, kubeconfig, address, control-plane namespace, image, a DPU, the template that it was installed
// with, and DPUServiceTemplates.
type victim struct {
	templateWorld
	images *httptest.Server // a registry that knows the victim's login only
	pushed v1.Hash          // the image that is there
	ocp    *ocpRegistry
	copies string        // the namespace that the image is copied to
	inside client.Client // of the hosted cluster
	as     client.Client // of all strangers
}

func newVictim(t *testing.T) victim {
	t.Helper()
	v := victim{templateWorld: newTemplateWorld(t)}
	v.inside = v.clientOf(v.ground.hosted(t).Admin)
	v.images, v.pushed = v.registryFor("rose", "thorn")
	v.copiesImages()
	impersonating := rest.CopyConfig(v.cluster.Admin)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	v.as = v.clientOf(impersonating)
	v.grants()
	v.hosts("example.com/ovn:1")
	host := strings.TrimPrefix(v.images.URL, "https://")
	mapping := named(&corev1.ConfigMap{}, "oooi-system", v.ns+"-images")
	v.changes(mapping, func() { mapping.Data["repository"], mapping.Data["cache"] = host+"/layers", v.copies })
	binding := named(&rbacv1.ClusterRoleBinding{}, "", privilegedBinding) // other tests share the hosted cluster
	v.Expect(client.IgnoreNotFound(v.inside.Delete(v.ctx, binding))).To(Succeed())
	b := v.bridge()
	b.Name, b.Spec.DPUClusterRef.Name, b.Spec.PullSecret, b.Spec.SSHKey, b.Spec.OCPReleaseImage = theirBridge, "tulip", "rose-pull", "rose-ssh", lookedUp
	b.Spec.DPUDeploymentRef, b.Spec.ManageDPUServiceTemplates = &dpuv1.DPUDeploymentReference{Name: "ovn"}, true
	login := base64.StdEncoding.EncodeToString([]byte("rose:thorn"))
	v.creates(v.secret("rose-pull", corev1.DockerConfigJsonKey, fmt.Sprintf(`{"auths":{"thorn.example.com":{"auth":"x"},%q:{"auth":%q},%q:{"auth":%[2]q}}}`, host, login, v.ocp.host)), v.secret("rose-ssh", "id_rsa.pub", sshKey))
	v.creates(v.dpuCluster("tulip", "example.com/hosted"), b)
	v.hyperShift(theirBridge, "thorn")
	v.appliesRole("dpu-bridge", v.ignites(theirBridge))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: v.controlPlane(theirBridge), Name: "kube-apiserver"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 6443}}}}
	v.creates(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.ns + "-kube-system"}},
		service, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v.ns + "-kube-system", Name: "settings"}},
	)
	v.reports(service, func() {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: thirdParty}}
	})
	node := named(&corev1.Node{}, "", "publishes")
	v.reports(node, func() {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.1"})
	})
	v.installed("lily-1")
	v.rolledOut(theirBridge, lookedUp, "1a2b3c4d")
	v.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d")) })
	v.isWell()
	v.silent()
	return v
}

// registryFor has the BlueField container image of lookedUp, and is for one user.
func (v victim) registryFor(user, password string) (*httptest.Server, v1.Hash) {
	v.t.Helper()
	working := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	images := httptest.NewTLSServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			a.Header().Set("WWW-Authenticate", "Basic")
			a.WriteHeader(http.StatusUnauthorized)
			return
		}
		working.ServeHTTP(a, r)
	}))
	v.t.Cleanup(images.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(images.URL, "https://") + "/layers:4.20.6")
	v.Expect(err).NotTo(HaveOccurred())
	v.Expect(remote.Write(ref, empty.Image, remote.WithTransport(trusting()), remote.WithAuth(&authn.Basic{Username: user, Password: password}))).To(Succeed())
	digest, err := empty.Image.Digest()
	v.Expect(err).NotTo(HaveOccurred())
	return images, digest
}

// isWell waits until the victim's bridge says that nothing is missing.
func (v victim) isWell() {
	v.t.Helper()
	for condition, reason := range map[string]string{
		ready: "Ready", injected: "Injected", approval: "Watching", templated: "Configured", image: "Found",
		dpuv1.ConditionServiceTemplatesReady: "HostsRollingOut", privileged: "Granted",
	} {
		v.saysOf(theirBridge, condition, metav1.ConditionTrue, reason)
	}
}

// installed makes a DPU of the victim that has its operating system, and has joined: nothing is being installed.
func (v victim) installed(name string) {
	v.t.Helper()
	dpu := v.dpu(name, "tulip")
	v.Expect(unstructured.SetNestedField(dpu.Object, "rhcos", "spec", "bfb")).To(Succeed())
	v.Expect(unstructured.SetNestedField(dpu.Object, "plain", "spec", "dpuFlavor")).To(Succeed())
	v.creates(dpu)
	v.reports(dpu, func() {
		dpu.Object["status"] = map[string]any{"phase": "Ready", "conditions": []any{isTrue(dpf.ConditionOSInstalled), isTrue(dpf.ConditionClusterReady)}}
	})
}

func isTrue(condition string) map[string]any {
	return map[string]any{"type": condition, "status": "True", "reason": condition, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// in is the victim in a subtest.
func (v victim) in(t *testing.T) victim {
	inner := *v.world
	inner.t, inner.Gomega = t, NewWithT(t)
	inner.SetDefaultEventuallyTimeout(time.Minute)
	inner.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	v.world = &inner
	v.t = t
	return v
}

// namespaces are the victim's, DPF's, and those in which nobody may write bridges.
func (v victim) namespaces() []string {
	return []string{v.ns, v.dpf, v.controlPlane(theirBridge), v.ns + "-kube-system", v.copies}
}

// has is all of the victim's objects with their versions. The status of the bridge is left out: its heartbeat changes.
func (v victim) has() map[string]string {
	v.t.Helper()
	all := map[string]string{}
	note := func(o client.Object) {
		version := o.GetResourceVersion()
		if b, is := o.(*dpuv1.DPUHCPBridge); is {
			version = fmt.Sprint(b.Generation, b.Finalizers, b.Annotations, b.DeletionTimestamp)
		}
		all[fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o))] = string(o.GetUID()) + " " + version
	}
	for _, namespace := range v.namespaces() {
		note(sees(v.world, named(&corev1.Namespace{}, "", namespace), there))
		for _, list := range []client.ObjectList{
			&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}, &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{},
			&dpuv1.DPUHCPBridgeList{}, &dpf.DPUClusterList{}, &dpf.DPUList{}, &dpf.DPUServiceTemplateList{}, &dpf.DPUDeploymentList{}, &dpf.DPUFlavorList{}, &dpf.BFBList{},
		} {
			v.Expect(v.api.List(v.ctx, list, client.InNamespace(namespace))).To(Succeed())
			for _, o := range items(list) {
				note(o)
			}
		}
	}
	for _, stream := range v.streams(v.copies) {
		note(stream)
	}
	for _, o := range []client.Object{&metallb.IPAddressPool{}, &metallb.L2Advertisement{}} {
		note(sees(v.world, named(o, "metallb-system", names.Qualified(v.ns, theirBridge)), there))
	}
	binding := named(&rbacv1.ClusterRoleBinding{}, "", privilegedBinding)
	v.Expect(v.inside.Get(v.ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
	note(binding)
	return all
}

// written are the writes after the first since in the victim's namespaces, and to the victim's objects of MetalLB.
func (v victim) written(since int) (all []string) {
	for _, call := range v.calls.written()[since:] {
		own := strings.HasSuffix(call, "/dpuhcpbridges/"+theirBridge+"/status")
		his := slices.ContainsFunc(v.namespaces(), func(namespace string) bool { return strings.Contains(call+"/", "/namespaces/"+namespace+"/") })
		if his && !own || strings.HasSuffix(call, "/"+names.Qualified(v.ns, theirBridge)) {
			all = append(all, call)
		}
	}
	return all
}

// stranger may write in one namespace what the author of a bridge may, and HostedClusters and DPUs too.
type stranger struct {
	victim
	way
	at     string // his namespace
	number int    // of his way
	named  string // what he wrote himself
	told   string // what conditions told him
	error  string // the API server's last error
}

// vip is the only address that he may have announced: no other stranger asks for it.
func (s *stranger) vip() v1alpha1.IPAddress {
	return v1alpha1.IPAddress(fmt.Sprintf("192.0.2.%d", 100+s.number))
}

// announces are the stranger's pools with another address than his own, or for a namespace of the victim.
func (s *stranger) announces() (all []metallb.PoolSpec) {
	s.t.Helper()
	pools := &metallb.IPAddressPoolList{}
	s.Expect(s.api.List(s.ctx, pools, client.InNamespace("metallb-system"))).To(Succeed())
	for _, p := range pools.Items {
		if p.Labels[names.LabelBridgeNamespace] == s.at {
			all = append(all, p.Spec)
		}
	}
	return slices.DeleteFunc(all, func(p metallb.PoolSpec) bool {
		return slices.Equal(p.Addresses, []string{string(s.vip()) + "/32"}) && !slices.ContainsFunc(p.AllocateTo.Namespaces, func(n string) bool { return slices.Contains(s.namespaces(), n) })
	})
}

// mayAs grants the stranger something in his namespace, by a Role of that name.
func (s *stranger) mayAs(role string, rules ...rbacv1.PolicyRule) {
	s.t.Helper()
	at := metav1.ObjectMeta{Namespace: s.at, Name: role}
	s.creates(&rbacv1.Role{ObjectMeta: at, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "stranger"}},
	})
}

func (v victim) stranger(number int, of way) *stranger {
	v.t.Helper()
	namespace := v.ns + "-" + cmp.Or(of.at, fmt.Sprint("s", number))
	s := &stranger{victim: v, way: of, at: namespace, number: number, named: namespace}
	everything := []string{"get", "list", "create", "update", "patch", "delete"}
	if err := v.api.Create(v.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		v.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
		return s // the namespace existed before
	}
	s.mayAs("author",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{dpuv1.GroupVersion.Group}, Resources: []string{"dpuhcpbridges"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{dpf.GroupVersion.Group}, Resources: []string{"dpuclusters", "dpus", "bfbs", "dpuflavors"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{dpf.ServiceGroupVersion.Group}, Resources: []string{"dpudeployments", "dpuservicetemplates"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{"image.openshift.io"}, Resources: []string{"imagestreams"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{hyperv1.GroupVersion.Group}, Resources: []string{"hostedclusters", "nodepools"}, Verbs: everything})
	v.appliesRole("dpu-bridge", namespace)
	for _, o := range []client.Object{v.secret("pull", corev1.DockerConfigJsonKey, `{"auths":{"quay.io":{"auth":"x"}}}`), v.secret("ssh", "id_rsa.pub", sshKey), v.dpuCluster("d1", "example.com/hosted")} {
		o.SetNamespace(namespace)
		v.creates(o)
	}
	return s
}

// writes objects as the stranger, and keeps the API server's refusals.
func (s *stranger) writes(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		text, err := json.Marshal(o)
		s.Expect(err).NotTo(HaveOccurred())
		s.named += string(text)
		if o.GetNamespace() == "" {
			o.SetNamespace(s.at)
		}
		if err := s.as.Create(s.ctx, o); err != nil {
			s.error = err.Error()
		}
	}
}

// bridges makes the stranger's bridge b1, at node ports, as edited.
func (s *stranger) bridges(edit func(*dpuv1.DPUHCPBridge)) *dpuv1.DPUHCPBridge {
	s.t.Helper()
	b := s.dpuWorld.bridge()
	b.Namespace, b.Spec.ExposeThroughLoadBalancer, b.Spec.MetalLBVirtualIP = s.at, false, ""
	edit(b)
	s.writes(b)
	return b
}

// exposed has the bridge announce the stranger's own address.
func (s *stranger) exposed(b *dpuv1.DPUHCPBridge) { exposed(s.vip())(b) }

func exposed(at v1alpha1.IPAddress) func(*dpuv1.DPUHCPBridge) {
	return func(b *dpuv1.DPUHCPBridge) { b.Spec.ExposeThroughLoadBalancer, b.Spec.MetalLBVirtualIP = true, at }
}

func (s *stranger) refers(b *dpuv1.DPUHCPBridge) {
	b.Spec.DPUClusterRef = dpuv1.DPUClusterReference{Namespace: v1alpha1.ObjectName(s.ns), Name: "tulip"}
}

func labelsOf(namespace, name, uid string) map[string]string {
	return map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: name, names.LabelBridgeNamespace: namespace, names.LabelOwnerUID: uid}
}

// labelled are the victim's labels with another UID, if one is given.
func (s *stranger) labelled(uid string) map[string]string {
	all := s.victims()
	all[names.LabelOwnerUID] = cmp.Or(uid, all[names.LabelOwnerUID])
	return all
}

// victims are the labels that the victim's bridge gives its objects.
func (s *stranger) victims() map[string]string {
	return labelsOf(s.ns, theirBridge, string(sees(s.world, named(&dpuv1.DPUHCPBridge{}, s.ns, theirBridge), there).UID))
}

// hosts makes a HostedCluster and a NodePool of the stranger, with a bridge's name.
func (s *stranger) hosts(name string, labels map[string]string) {
	s.t.Helper()
	hc, pool := hostedClusterOf(s.at, name), named(&hyperv1.NodePool{}, s.at, name)
	pool.Spec = hyperv1.NodePoolSpec{ClusterName: name, Release: hyperv1.Release{Image: release}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}, Replicas: new(int32), Arch: hyperv1.ArchitectureARM64, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}}
	hc.Labels, pool.Labels = labels, labels
	s.writes(hc, pool)
}

// keys makes an etcd key as a bridge does: without a key, an existing HostedCluster stops the bridge.
func (s *stranger) keys(bridge string, labels map[string]string) {
	s.t.Helper()
	key := s.secret(names.BridgeKey(bridge), hyperv1.AESCBCKeySecretKey, strings.Repeat("k", 32))
	key.Namespace, key.Labels = s.at, maps.Clone(labels)
	key.Labels[names.LabelBridgeSecret] = "true"
	s.writes(key)
}

// restores makes a HostedCluster, NodePool and key that name a bridge of the stranger, and the UID of none: the bridge takes them over.
func (s *stranger) restores(bridge string) {
	s.t.Helper()
	labels := labelsOf(s.at, bridge, deadUID)
	s.hosts(bridge, labels)
	s.keys(bridge, labels)
}

// served plays HyperShift for the stranger's HostedCluster b1, with a kubeconfig of another server.
func (s *stranger) served(server string) {
	s.t.Helper()
	hc, pool := sees(s.world, named(&hyperv1.HostedCluster{}, s.at, "b1"), there), sees(s.world, named(&hyperv1.NodePool{}, s.at, "b1"), there)
	k := clientcmdapi.Config{}
	s.Expect(yaml.Unmarshal(s.kubeconfigOf("mine"), &k)).To(Succeed())
	k.Clusters[0].Cluster.Server = server
	text, err := yaml.Marshal(k)
	s.Expect(err).NotTo(HaveOccurred())
	s.named += server
	s.Expect(hypershift.Serve(s.ctx, s.api, hc, pool, text)).To(Succeed())
}

// hearsOf waits until a bridge of the stranger has all these reasons.
func (s *stranger) hearsOf(bridge string, all map[string]string) {
	s.t.Helper()
	if len(all) == 0 {
		return
	}
	b := sees(s.world, named(&dpuv1.DPUHCPBridge{}, s.at, bridge), func(g Gomega, b *dpuv1.DPUHCPBridge) {
		for condition, reason := range all {
			g.Expect(b.Status.Conditions).To(ContainElement(And(HaveField("Type", condition), HaveField("Reason", reason))))
		}
	})
	s.told += fmt.Sprint(b.Status.Conditions)
}

// made lists what the stranger has of a kind.
func (s *stranger) made(list client.ObjectList) []client.Object {
	s.t.Helper()
	s.Expect(s.as.List(s.ctx, list, client.InNamespace(s.at))).To(Succeed())
	return items(list)
}

// leaves deletes all that the stranger made; to end his bridges is the manager's work, and goes on.
func (s *stranger) leaves() {
	s.t.Helper()
	for _, b := range s.made(&dpuv1.DPUHCPBridgeList{}) {
		s.Expect(s.as.Delete(s.ctx, b)).To(Succeed())
	}
	for _, list := range s.kinds() {
		for _, o := range s.made(list) {
			if controllerutil.RemoveFinalizer(o, finalizer) {
				s.Expect(client.IgnoreNotFound(s.as.Update(s.ctx, o))).To(Succeed())
			}
		}
	}
}

// hasLeft waits until the stranger's bridges have ended, and then deletes what is not theirs.
func (s *stranger) hasLeft() {
	s.t.Helper()
	s.Eventually(func() []client.Object { return s.made(&dpuv1.DPUHCPBridgeList{}) }).Should(BeEmpty())
	for _, list := range s.kinds() {
		for _, o := range s.made(list) {
			s.Expect(client.IgnoreNotFound(s.as.Delete(s.ctx, o))).To(Succeed())
		}
	}
}

func (s *stranger) kinds() []client.ObjectList {
	return []client.ObjectList{
		&hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &corev1.ConfigMapList{}, &dpf.DPUList{}, &dpf.DPUServiceTemplateList{},
		&dpf.DPUFlavorList{}, &dpf.BFBList{}, &dpf.DPUDeploymentList{}, streamList(),
	}
}

// heard is what the stranger was told of the victim, and did not name himself.
func (s *stranger) heard() (all []string) {
	s.t.Helper()
	events, secrets := &eventsv1.EventList{}, &corev1.SecretList{}
	s.Expect(s.api.List(s.ctx, events, client.InNamespace(s.at))).To(Succeed())
	s.Expect(s.api.List(s.ctx, secrets, client.InNamespace(s.at))).To(Succeed())
	text := s.told + s.error
	for _, e := range events.Items {
		text += e.Note + "\n"
	}
	for _, secret := range secrets.Items {
		for _, value := range secret.Data {
			text += string(value) + "\n"
		}
	}
	for _, word := range append(slices.Clone(ofTheVictim), s.ns+"/") {
		if strings.Contains(text, word) && !strings.Contains(s.named, word) {
			all = append(all, word+" in "+text)
		}
	}
	return all
}

// way is how a stranger tries to reach what is another's.
type way struct {
	name    string
	at      string            // the suffix of his namespace; empty for a new one
	allows  func(v victim)    // what the victim does before
	does    func(s *stranger) // what the stranger does
	says    map[string]string // what his bridge then says, reasons by condition
	of      string            // his bridge's name; empty for b1
	refused string            // the API server's refusal; empty for none
	quietly bool              // no condition tells that the manager has seen it
	keeps   func(s *stranger) // checks what he still has, in the end
}

// rounds are ways that can be tried at the same time: one in each namespace, and one for which the victim does something.
func rounds(ways []way) (all [][]way) {
	for _, w := range ways {
		fits := func(others []way) bool {
			return !slices.ContainsFunc(others, func(o way) bool { return w.at != "" && w.at == o.at || w.allows != nil && o.allows != nil })
		}
		i := slices.IndexFunc(all, fits)
		if i < 0 {
			i, all = len(all), append(all, nil)
		}
		all[i] = append(all[i], w)
	}
	return all
}

// withstands checks that ways which are tried at the same time, and their ends, change nothing. The numbers of the ways begin at first.
func (v victim) withstands(ways []way, first int) {
	v.t.Helper()
	for _, way := range ways {
		if way.allows != nil {
			way.allows(v)
		}
	}
	before, since := v.has(), len(v.calls.written())
	var strangers []*stranger
	unharmed := func(when string) {
		v.t.Helper()
		v.Expect(v.written(since)).To(BeEmpty(), when)
		v.Expect(v.has()).To(Equal(before), when)
		for _, s := range strangers {
			v.Expect(s.announces()).To(BeEmpty(), when+": "+s.name)
		}
	}
	for i, way := range ways {
		v.t.Run(way.name, func(t *testing.T) {
			s := v.in(t).stranger(first+i, way)
			way.does(s)
			s.Expect(s.error).To(ContainSubstring(way.refused))
			s.Expect(s.error == "").To(Equal(way.refused == ""), s.error)
			s.hearsOf(cmp.Or(way.of, "b1"), way.says)
			s.victim = v
			strangers = append(strangers, s)
		})
	}
	if slices.ContainsFunc(ways, func(w way) bool { return w.quietly }) {
		v.silent()
	}
	unharmed("while they have it")
	for _, s := range strangers {
		if s.keeps != nil {
			s.keeps(s)
		}
		s.leaves()
	}
	for _, s := range strangers {
		s.hasLeft()
	}
	unharmed("after they have gone")
	for _, s := range strangers {
		v.Expect(s.heard()).To(BeEmpty(), s.name)
	}
	v.isWell()
}

const (
	bound, metal, secretsValid, ready = dpuv1.ConditionDPUClusterBound, dpuv1.ConditionMetalLBConfigured, dpuv1.ConditionSecretsValid, dpuv1.ConditionReady
	approval, injected, templated     = dpuv1.ConditionCSRAutoApprovalActive, dpuv1.ConditionKubeconfigInjected, dpuv1.ConditionIgnitionConfigured
	image, privileged                 = dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionPrivilegedPodsAllowed
)

func granting(list string) func(v victim) {
	return func(v victim) {
		v.t.Helper()
		cluster := v.dpuCluster("tulip", "")
		v.changes(cluster, func() {
			cluster.Annotations = map[string]string{names.AnnotationAllowedNamespaces: strings.ReplaceAll(list, "NS", v.ns)}
		})
	}
}

// forges the status of a bridge that refers to a DPUCluster in the victim's namespace, with permission to write it.
func forges(cluster v1alpha1.ObjectName, policy dpuv1.DPUClusterDeletionPolicy) func(s *stranger) {
	return func(s *stranger) {
		s.t.Helper()
		s.mayAs("forger", rbacv1.PolicyRule{APIGroups: []string{dpuv1.GroupVersion.Group}, Resources: []string{"dpuhcpbridges/status"}, Verbs: []string{"update"}})
		s.restores("b1")
		b := s.bridges(func(b *dpuv1.DPUHCPBridge) {
			s.refers(b)
			b.Spec.DPUClusterRef.Name, b.Spec.DPUClusterDeletionPolicy = cluster, policy
		})
		s.hearsOf("b1", map[string]string{bound: "RefNotPermitted"})
		s.Eventually(func(g Gomega) {
			g.Expect(s.as.Get(s.ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
			meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: bound, Status: metav1.ConditionTrue, Reason: "Bound"})
			g.Expect(s.as.Status().Update(s.ctx, b)).To(Succeed())
		}).Should(Succeed())
	}
}

func intoAnothersDPUCluster() []way {
	refused := map[string]string{bound: "RefNotPermitted"}
	refers := func(s *stranger) { s.bridges(s.refers) }
	return []way{
		{name: "the victim's DPUCluster", does: refers, says: refused},
		{name: "one that grants somebody else", allows: granting("NS-other"), does: refers, says: refused},
		{name: "one that grants names with his in them", at: "near", allows: granting("NS-near-by,a-NS-near, NS-nea,NS"), does: refers, says: refused},
		{name: "one that grants everybody, as he would write it", allows: granting("*"), does: refers, says: refused},
		{name: "one that is not there, with a HostedCluster of before", says: refused, does: func(s *stranger) {
			s.restores("b1")
			s.bridges(func(b *dpuv1.DPUHCPBridge) { s.refers(b); b.Spec.DPUClusterRef.Name = "daisy" })
		}},
		{name: "the victim's, with a HostedCluster of before that he ends", says: refused, does: func(s *stranger) { s.restores("b1"); refers(s) }},
		{name: "the victim's, by force", says: refused, does: func(s *stranger) {
			s.restores("b1")
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				s.refers(b)
				b.Annotations = map[string]string{names.AnnotationForceDelete: "true"}
			})
		}},
		{name: "the victim's, as a path", refused: "dpuClusterRef", does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.DPUClusterRef.Name = v1alpha1.ObjectName(s.ns + "/tulip") })
		}},
		{name: "the victim's, with a policy that goes with it", says: refused, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { s.refers(b); b.Spec.DPUClusterDeletionPolicy = dpuv1.DeleteHostedCluster })
		}},
		{name: "the victim's, with a status that says that he had it", says: refused, does: forges("tulip", dpuv1.DeleteHostedCluster)},
		{name: "one that is not there, with a status that says that he had it", says: refused, does: forges("daisy", dpuv1.RetainHostedCluster)},
		{name: "one that is not there, with that status and a policy that goes with it", says: refused, does: forges("daisy", dpuv1.DeleteHostedCluster)},
		{name: "two bridges for the victim's", says: refused, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { s.refers(b); b.Name = "b2" })
			refers(s)
		}},
		{name: "one of his with the victim's name", says: map[string]string{bound: "Bound"}, does: func(s *stranger) {
			s.writes(&dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Name: "tulip"}, Spec: dpf.DPUClusterSpec{Type: "example.com/hosted"}})
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.DPUClusterRef.Name = "tulip" })
		}},
		{name: "one of his with the victim's kubeconfig", says: map[string]string{bound: "KubeconfigTaken"}, does: func(s *stranger) {
			s.writes(&dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Name: "d2"}, Spec: dpf.DPUClusterSpec{Type: "example.com/hosted", Kubeconfig: names.BridgeKubeconfig(s.ns, theirBridge)}})
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.DPUClusterRef.Name = "d2" })
		}},
	}
}

func intoAnothersNamespace() []way {
	taken := map[string]string{ready: "NamespaceTaken"}
	plain := func(*dpuv1.DPUHCPBridge) {}
	named := func(name string) func(*dpuv1.DPUHCPBridge) { return func(b *dpuv1.DPUHCPBridge) { b.Name = name } }
	return []way{
		{name: "the control plane's, by namespace and name", at: "orchid", says: taken, does: func(s *stranger) { s.bridges(plain) }},
		{name: "the control plane's, with a HostedCluster of his", at: "orchid", says: map[string]string{ready: "HostedClusterTaken"}, does: func(s *stranger) { s.hosts("b1", nil); s.bridges(plain) }},
		{name: "the control plane's, with a HostedCluster of before", at: "orchid", says: taken, does: func(s *stranger) { s.restores("b1"); s.bridges(s.exposed) }},
		{name: "the control plane's, with a HostedCluster of his bridge's UID", at: "orchid", says: taken, does: func(s *stranger) {
			b := s.bridges(s.exposed)
			s.hearsOf("b1", taken)
			s.hosts("b1", labelsOf(s.at, "b1", string(b.UID)))
			s.keys("b1", labelsOf(s.at, "b1", string(b.UID)))
		}, quietly: true},
		{name: "the control plane's, with a kubeconfig for it", at: "orchid", says: map[string]string{ready: "NamespaceTaken", approval: "NamespaceTaken"}, does: func(s *stranger) {
			s.restores("b1")
			s.bridges(s.exposed)
			s.served("https://kube-apiserver." + s.controlPlane(theirBridge) + ".svc:6443")
		}},
		{name: "a HostedCluster of his there", at: "orchid", does: func(s *stranger) { s.hosts("b1", nil) }, quietly: true},
		{name: "one of no control plane", at: "kube", does: func(s *stranger) { s.bridges(named("system")) }, of: "system", says: taken},
		{name: "one of no control plane, with a HostedCluster of before", at: "kube", of: "system", says: taken, does: func(s *stranger) {
			s.restores("system")
			s.bridges(func(b *dpuv1.DPUHCPBridge) { s.exposed(b); b.Name = "system" })
		}},
	}
}

func intoAnothersAddress() []way {
	refused := func(reason string) map[string]string { return map[string]string{metal: reason} }
	asks := func(at v1alpha1.IPAddress) func(s *stranger) { return func(s *stranger) { s.bridges(exposed(at)) } }
	works := func(at v1alpha1.IPAddress) func(s *stranger) {
		return func(s *stranger) { s.restores("b1"); s.bridges(exposed(at)) }
	}
	return []way{
		{name: "the victim's address", does: asks("192.0.2.10"), says: refused("VirtualIPInUse")},
		{name: "the victim's, of a bridge that works, as labels say", does: works("192.0.2.10"), says: refused("VirtualIPInUse")},
		{name: "the victim's, in IPv6", does: asks("::ffff:192.0.2.10"), refused: "metalLBVirtualIP"},
		{name: "the victim's, in hexadecimal", does: asks("::ffff:c000:20a"), refused: "metalLBVirtualIP"},
		{name: "the victim's, with zeros", does: asks("192.0.2.010"), refused: "metalLBVirtualIP"},
		{name: "the victim's, as a network", does: asks("192.0.2.10/32"), refused: "metalLBVirtualIP"},
		{name: "a Node's address", does: asks("192.0.2.1"), says: refused("VirtualIPInUse")},
		{name: "a Node's, of a bridge that works, as labels say", does: works("192.0.2.1"), says: refused("VirtualIPInUse")},
		{name: "one outside of what is allowed", does: asks("10.0.0.1"), says: refused("VirtualIPNotAllowed")},
		{name: "one outside, of a bridge that works, as labels say", does: works("10.0.0.1"), says: refused("VirtualIPNotAllowed")},
		{name: "one of another Service", does: works(thirdParty), says: refused("VirtualIPNotAllowed")},
		{name: "another than he was given", refused: "metalLBVirtualIP is set once", does: func(s *stranger) {
			b := s.bridges(s.exposed)
			s.hearsOf("b1", refused("Configured"))
			b = sees(s.world, b, there)
			b.Spec.MetalLBVirtualIP = "192.0.2.10"
			s.error = fmt.Sprint(s.as.Update(s.ctx, b))
		}},
	}
}

func intoAnothersSecrets() []way {
	pulls := func(name string) func(*stranger) {
		return func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				b.Spec.PullSecret = dpuv1.SecretName(strings.ReplaceAll(name, "NS", s.ns))
			})
		}
	}
	return []way{
		{name: "a Secret by namespace", does: pulls("NS/rose-pull"), refused: "must be the name of a Secret in this namespace"},
		{name: "a Secret by path", does: pulls("../../NS/secrets/rose-pull"), refused: "must be the name of a Secret in this namespace"},
		{name: "a Secret of the victim's by its name", does: pulls("rose-pull"), says: map[string]string{secretsValid: "SecretNotFound"}},
		{name: "a Secret by path, of a HostedCluster of before", says: map[string]string{bound: "Bound"}, does: func(s *stranger) {
			s.restores("b1")
			hc := sees(s.world, named(&hyperv1.HostedCluster{}, s.at, "b1"), there)
			hc.Spec.PullSecret.Name = "../../" + s.ns + "/secrets/rose-pull"
			s.Expect(s.as.Update(s.ctx, hc)).To(Succeed())
			s.named += hc.Spec.PullSecret.Name
			s.bridges(func(*dpuv1.DPUHCPBridge) {})
		}},
		{name: "a kubeconfig of the victim's API", at: reached, says: map[string]string{injected: "Injected", privileged: "GrantedByOthers"}, does: func(s *stranger) {
			s.bridges(func(*dpuv1.DPUHCPBridge) {})
			since := s.dials()
			s.served("https://kube-apiserver." + s.controlPlane(theirBridge) + ".svc:6443")
			s.hearsOf("b1", map[string]string{injected: "Injected"})
			own := "kube-apiserver." + s.at + "-b1.svc:6443"
			s.Eventually(func() []string { return s.dialedSince(since) }).Should(ContainElement(own))
			s.Expect(slices.Compact(s.dialedSince(since))).To(ConsistOf(own))
		}},
		{name: "a key with the victim's labels", says: map[string]string{secretsValid: "NameTaken"}, does: func(s *stranger) {
			s.keys("b1", s.victims())
			s.bridges(func(*dpuv1.DPUHCPBridge) {})
		}},
	}
}

func (s *stranger) dialedSince(n int) []string {
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	return slices.Sorted(slices.Values(s.wire.dialed[n:]))
}

func intoAnothersBridge() []way {
	plain := func(*dpuv1.DPUHCPBridge) {}
	marked := func(uid string) func(s *stranger) {
		return func(s *stranger) { s.marks(s.labelled(uid)) }
	}
	return []way{
		{name: "objects with the victim's labels", does: marked(""), quietly: true, keeps: keepsMarked},
		{name: "objects that name the victim's bridge, and no owner that lives", does: marked(deadUID), quietly: true, keeps: keepsMarked},
		{name: "those, and a bridge of the victim's name that is ended by force", of: theirBridge, says: map[string]string{bound: "Bound"}, does: func(s *stranger) {
			s.marks(s.victims())
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				b.Name, b.Annotations = theirBridge, map[string]string{names.AnnotationForceDelete: "true"}
			})
		}},
		{name: "a HostedCluster of the victim's name", of: theirBridge, says: map[string]string{ready: "HostedClusterTaken"}, does: func(s *stranger) {
			s.hosts(theirBridge, nil)
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Name = theirBridge })
		}},
		{name: "a HostedCluster of the victim's UID", says: map[string]string{ready: "HostedClusterTaken"}, does: func(s *stranger) {
			labels := s.victims()
			s.hosts("b1", labelsOf(s.at, "b1", labels[names.LabelOwnerUID]))
			s.bridges(plain)
		}},
		{name: "a bridge of the victim's UID and labels, as a backup has it", says: map[string]string{bound: "Bound"}, does: func(s *stranger) {
			labels := s.victims()
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.UID, b.Labels = types.UID(labels[names.LabelOwnerUID]), labels })
		}},
		{name: "a whole backup", says: map[string]string{bound: "Bound"}, does: func(s *stranger) {
			s.restores("b1")
			s.writes(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names.BridgeIgnition("b1"), Labels: labelsOf(s.at, "b1", deadUID)}})
			s.bridges(plain)
		}},
		{name: "a status that says that it works", says: map[string]string{metal: "VirtualIPInUse"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				exposed("192.0.2.10")(b)
				b.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionHostedClusterAvailable, Status: "True", Reason: "AsExpected", LastTransitionTime: metav1.Now()}}
			})
		}},
		{name: "that status, written by itself", refused: "forbidden", does: func(s *stranger) {
			b := sees(s.world, s.bridges(plain), there)
			b.Status.Conditions = []metav1.Condition{{Type: bound, Status: "True", Reason: "Bound", LastTransitionTime: metav1.Now()}}
			s.error = fmt.Sprint(s.as.Status().Update(s.ctx, b))
		}},
		{name: "a mapping of his own", says: map[string]string{image: "RegistryUnauthorized"}, does: func(s *stranger) {
			s.writes(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.ns + "-images"}, Data: map[string]string{"4.19.0": osImage}})
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				b.Spec.OCPReleaseImage = "quay.io/openshift-release-dev/ocp-release:4.19.0-multi"
			})
		}},
		{name: "a DPU of his in the victim's DPUCluster", does: joins},
	}
}

// intoAnothersInstallation are ways to what the victim's DPUs are installed with.
func intoAnothersInstallation() []way {
	theirs := func(s *stranger, b *dpuv1.DPUHCPBridge) {
		b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Namespace: v1alpha1.ObjectName(s.ns), Name: "ovn"}
		b.Spec.ManageDPUServiceTemplates = true
	}
	return []way{
		{name: "the victim's DPUDeployment", says: map[string]string{templated: "RefNotPermitted"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { theirs(s, b) })
		}},
		{name: "the victim's DPUDeployment and DPUCluster", says: map[string]string{bound: "RefNotPermitted"}, does: func(s *stranger) {
			s.restores("b1")
			s.bridges(func(b *dpuv1.DPUHCPBridge) { s.refers(b); theirs(s, b) })
		}},
		{name: "a DPU of his in the victim's DPUCluster, with a flavor of his", quietly: true, does: func(s *stranger) {
			dpu := s.dpu("weed-2", "tulip")
			dpu.Object["spec"].(map[string]any)["bfb"], dpu.Object["spec"].(map[string]any)["dpuFlavor"] = "rhcos", "plain"
			dpu.SetNamespace(s.at)
			s.writes(s.toInstall(s.at)...)
			s.writes(dpu)
		}},
		{name: "a template with the victim's labels", quietly: true, does: func(s *stranger) { s.writes(s.copied(s.victims())) }, keeps: keepsTemplate},
		{name: "a template with the labels of a bridge that the victim restored", quietly: true, does: func(s *stranger) { s.writes(s.copied(s.labelled(deadUID))) }, keeps: keepsTemplate},
		{name: "a template for the victim's DPUs", quietly: true, does: func(s *stranger) { s.writes(s.copied(nil)) }, keeps: keepsTemplate},
		{name: "the victim's image, with a login of his own", says: map[string]string{image: "RegistryUnauthorized"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.OCPReleaseImage = lookedUp })
		}},
		{name: "a HostedCluster that the victim's bridge is to take over", of: theirBridge, says: map[string]string{ready: "HostedClusterTaken"}, does: func(s *stranger) {
			s.offers(theirBridge, s.ns+"/"+theirBridge)
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Name = theirBridge })
		}},
		{name: "the control plane's namespace, with a HostedCluster to take over", at: "orchid", says: map[string]string{ready: "NamespaceTaken"}, does: func(s *stranger) {
			s.offers("b1", s.at+"/b1")
			s.bridges(func(*dpuv1.DPUHCPBridge) {})
			s.hearsOf("b1", map[string]string{ready: "NamespaceTaken"})
			s.served("https://kube-apiserver." + s.controlPlane(theirBridge) + ".svc:6443")
		}, quietly: true, keeps: func(s *stranger) {
			hc := sees(s.world, named(&hyperv1.HostedCluster{}, s.at, "b1"), there)
			s.Expect(hc.Labels).NotTo(HaveKey(names.LabelBridge))
		}},
	}
}

// offers makes a HostedCluster, and all that a bridge takes over with it, for a bridge.
func (s *stranger) offers(name, to string) {
	s.t.Helper()
	for _, o := range s.orphaned(s.at, name) {
		if hc, is := o.(*hyperv1.HostedCluster); is {
			hc.Annotations = map[string]string{names.AnnotationAdoptBy: to}
		}
		s.writes(o)
	}
}

// copied is the victim's template in the stranger's namespace.
func (s *stranger) copied(labels map[string]string) *corev1.ConfigMap {
	s.t.Helper()
	theirs := s.template(func(Gomega, corev1.ConfigMap) {})
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: theirs.Name, Annotations: theirs.Annotations, Labels: map[string]string{dpf.LabelTemplate: "true"}}, Data: map[string]string{dpf.TemplateKey: "mine"}}
	if maps.Copy(m.Labels, labels); labels != nil {
		m.Labels[names.LabelBridgeTemplate] = "true"
	}
	return m
}

// keepsTemplate checks that the stranger's template stays as it is.
func keepsTemplate(s *stranger) {
	s.t.Helper()
	all := &corev1.ConfigMapList{}
	s.Expect(s.api.List(s.ctx, all, client.InNamespace(s.at), client.MatchingLabels{dpf.LabelTemplate: "true"})).To(Succeed())
	s.Expect(all.Items).To(ConsistOf(And(HaveField("DeletionTimestamp", BeNil()), HaveField("Data", HaveKeyWithValue(dpf.TemplateKey, "mine")))), s.name)
}

// marks makes objects of all kinds with labels. A finalizer keeps one ConfigMap when it is deleted.
func (s *stranger) marks(labels map[string]string) {
	s.t.Helper()
	s.hosts("b1", labels)
	secret := s.secret("forged", "a", "b")
	secret.Namespace, secret.Labels = s.at, maps.Clone(labels)
	secret.Labels[names.LabelBridgeSecret] = "true"
	s.writes(secret,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: labels}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays", Labels: labels, Finalizers: []string{finalizer}}},
		&dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: labels}, Spec: dpf.DPUClusterSpec{Type: "example.com/hosted"}},
		s.marked("forged", labels))
}

// marked is a DPUServiceTemplate of the stranger's.
func (s *stranger) marked(name string, labels map[string]string) client.Object {
	t := s.serviceTemplate(name)
	t.SetNamespace(s.at)
	t.SetLabels(labels)
	return t
}

// keepsMarked checks that the stranger's objects with another's labels stay.
func keepsMarked(s *stranger) {
	s.t.Helper()
	for _, o := range []client.Object{named(&corev1.ConfigMap{}, s.at, "forged"), named(&corev1.ConfigMap{}, s.at, "stays"), named(&corev1.Secret{}, s.at, "forged"), s.marked("forged", nil)} {
		sees(s.world, o, func(g Gomega, o client.Object) { g.Expect(o.GetDeletionTimestamp()).To(BeNil()) })
	}
}

// joins sends requests in the names of the stranger's DPU and of the victim's: only the victim's is approved.
func joins(s *stranger) {
	s.t.Helper()
	dpu := s.dpu("weed", "tulip")
	dpu.SetNamespace(s.at)
	s.writes(dpu)
	s.asksToJoin("weed", "weed")
	s.asksToJoin("lily-1", "lily-1")
	s.hears(corev1.EventTypeNormal, "DPUMayJoin", "certificate request lily-1 of lily-1 is approved")
	asked := &certv1.CertificateSigningRequest{}
	s.Expect(s.inside.Get(s.ctx, client.ObjectKey{Name: "weed"}, asked)).To(Succeed())
	s.Expect(asked.Status.Conditions).To(BeEmpty())
}

// The author of a bridge reaches no control-plane namespace, address, Secret or hosted cluster of another, and is told nothing of them, even
// if he may write HostedClusters with any labels.
func TestAStrangerToABridgeChangesNothing(t *testing.T) {
	v := newVictim(t)
	ways := slices.Concat(intoAnothersDPUCluster(), intoAnothersNamespace(), intoAnothersAddress(), intoAnothersSecrets(), intoAnothersBridge(), intoAnothersInstallation())
	copies := intoAnothersCopies() // after the others: no copy goes while a stranger's DPU waits for the victim's DPUCluster
	v.installsTheAdminsImage()
	number := 0
	for _, round := range append(rounds(ways), rounds(copies)...) {
		v.withstands(round, number)
		number += len(round)
	}
	v.Expect(number).To(Equal(len(ways) + len(copies)))

	// Nor can he block the deletion of the victim's bridge by objects with its labels.
	s := v.stranger(number, way{})
	s.marks(s.victims())
	v.Expect(v.api.Delete(v.ctx, named(&dpuv1.DPUHCPBridge{}, v.ns, theirBridge), client.GracePeriodSeconds(0))).To(Succeed())
	v.Expect(v.api.Delete(v.ctx, v.dpu("lily-1", "tulip"))).To(Succeed())
	v.tearsDown(theirBridge)
	v.gone(named(&dpuv1.DPUHCPBridge{}, v.ns, theirBridge))
	keepsMarked(s)
	var kept []string
	for _, stream := range v.streams(v.copies) {
		kept = append(kept, stream.GetName())
	}
	v.Expect(kept).To(ConsistOf(besideTheCopy), "the victim's copy alone goes with its bridge")
	v.uninstalls("image.openshift.io")
}
