package controller_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/internal/testkit/slowkey"
)

// goesOn is the time in which a change of an Infra or a bridge must be applied beside hostile hosted clusters.
const goesOn = 5 * time.Second

// endless is the kubeconfig of a hosted cluster with a key of 256 KiB, which takes crypto/x509 days.
func (g guest) endless() []byte {
	g.t.Helper()
	text, err := g.ground.hosted(g.t).Kubeconfig()
	g.Expect(err).NotTo(HaveOccurred())
	k := clientcmdapi.Config{}
	g.Expect(yaml.Unmarshal(text, &k)).To(Succeed())
	k.AuthInfos[0].AuthInfo.ClientKeyData = slowkey.PEM(1 << 20)
	text, err = yaml.Marshal(k)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(base64.StdEncoding.EncodeToString(text))).To(BeNumerically(">", 256<<10))
	return text
}

// hostile is a tenant whose Infra wants *.apps of a hosted cluster with an endless key.
func (g guest) hostile(name string, kubeconfig []byte) {
	g.t.Helper()
	g.puts(strings.ReplaceAll(strings.ReplaceAll(g.hosted("c2"), "c2", name), published["c2"], "203.0.113.99"))
	g.creates(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.ns, Name: name + "-admin-kubeconfig"}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	hc := named(&hyperv1.HostedCluster{}, g.ns, name)
	g.reports(hc, func() { hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: name + "-admin-kubeconfig"} })
	g.t.Cleanup(func() { g.Expect(g.api.Delete(context.Background(), hc)).To(Succeed()) }) // its Infra would wait for it
	infra := g.smallest(name)
	infra.Spec.AppsIngress = &v1alpha1.AppsIngress{Enabled: true, Service: v1alpha1.AppsService{Name: v1alpha1.ObjectName(g.ns + "-" + name)}}
	g.creates(infra)
}

// More tenants than the manager has workers for Infras and bridges write keys that take days: each key is refused by name, and the changes of
// others are applied meanwhile.
func TestKeysThatTakeDaysHoldNobodyUp(t *testing.T) {
	g := withGuest(t)
	w := dpuWorldIn(g.world)
	w.grants()
	g.grants()
	g.installs("--lb-class=metallb.io/metallb")
	kubeconfig := g.endless()
	bridgeOf := func(i int) *dpuv1.DPUHCPBridge {
		b := w.bridge()
		b.Name, b.Spec.DPUClusterRef.Name = fmt.Sprintf("b%d", i), v1alpha1.ObjectName(fmt.Sprintf("d%d", i))
		b.Spec.MetalLBVirtualIP = v1alpha1.IPAddress(fmt.Sprintf("192.0.2.%d", 10+i))
		return b
	}
	const hostile = 5
	for i := range hostile {
		g.hostile(fmt.Sprintf("evil%d", i), kubeconfig)
		w.creates(w.dpuCluster(fmt.Sprintf("d%d", i), "example.com/hosted"), bridgeOf(i))
	}
	for i := range hostile {
		name := fmt.Sprintf("b%d", i)
		hc, pool := sees(g.world, named(&hyperv1.HostedCluster{}, g.ns, name), there), sees(g.world, named(&hyperv1.NodePool{}, g.ns, name), there)
		g.Expect(hypershift.Serve(g.ctx, g.api, hc, pool, kubeconfig)).To(Succeed())
	}
	for i := range hostile {
		g.Expect(g.says(fmt.Sprintf("evil%d", i), v1alpha1.ConditionAppsIngressReady, metav1.ConditionFalse, "KubeconfigRefused")).To(ContainSubstring("NotTooLarge"))
		w.saysOf(fmt.Sprintf("b%d", i), dpuv1.ConditionKubeconfigInjected, metav1.ConditionFalse, "KubeconfigRefused")
	}

	g.publishes("")
	g.awaitsService()
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	began := time.Now()
	g.changes(infra, func() { infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"192.168.100.53"} })
	sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), func(e Gomega, s *v1alpha1.DNSServer) { e.Expect(s.Spec.UpstreamDNS).To(HaveLen(1)) })
	g.Expect(time.Since(began)).To(BeNumerically("<", goesOn))
	began = time.Now()
	w.creates(w.dpuCluster("d9", "example.com/hosted"), bridgeOf(9))
	sees(g.world, named(&hyperv1.HostedCluster{}, g.ns, "b9"), there)
	g.Expect(time.Since(began)).To(BeNumerically("<", goesOn))
	w.hyperShift("b9", "first")
	w.saysOf("b9", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
}
