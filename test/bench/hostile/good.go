package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
)

// bench is the management cluster, a well-behaved hosted cluster, and the hostile ones.
type bench struct {
	*audited.Cluster
	hosted  *envtest.Hosted
	api     client.Client
	admin   kubernetes.Interface // of the good hosted cluster
	kubelet kubernetes.Interface // of the same, as node-bootstrapper
	dpus    int                  // number of those that have asked
	rounds  int

	csrs, applied, bridged waits
}

// begin sets everything up, with the hostile clusters at work.
func begin(ctx context.Context, binary string, quiet bool) (b *bench, err error) {
	b = &bench{}
	if b.Cluster, err = audited.Start(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.end()
		}
	}()
	if b.hosted, err = envtest.StartHosted(apiOf("good")); err != nil {
		return b, err
	}
	if b.api, err = client.New(b.Config, client.Options{Scheme: controller.Scheme()}); err != nil {
		return b, err
	}
	hosts, err := b.serve(ctx, quiet)
	if err != nil {
		return b, err
	}
	for _, step := range []func(context.Context) error{b.goodHosted, b.bridges, b.infras} {
		if err := step(ctx); err != nil {
			return b, err
		}
	}
	err = b.ManageWith(ctx, hosts, binary, "manager", "--metrics-bind-address=0", "--bridge-virtual-ips=198.18.0.0/16", "--health-probe-bind-address=0",
		"--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:lab")
	if err != nil {
		return b, err
	}
	for _, name := range bridgeNames {
		if err := b.hyperShift(ctx, name); err != nil {
			return b, err
		}
	}
	made := time.Now()
	return b, b.Until(ctx, func() (bool, error) {
		if time.Since(made) < 6*time.Second { // requests in a DPU's first seconds may be an earlier DPU's (internal/csr)
			return false, nil
		}
		one := &dpuv1.DPUHCPBridge{}
		err := b.api.Get(ctx, client.ObjectKey{Namespace: objects.Namespace, Name: "good"}, one)
		return meta.IsStatusConditionTrue(one.Status.Conditions, dpuv1.ConditionCSRAutoApprovalActive), err
	})
}

func (b *bench) end() {
	if b.hosted != nil {
		_ = b.hosted.Stop() // it ends with this process
	}
	b.Stop()
}

// apiOf a hosted cluster is the name of its API server (plan/bridge, approve; plan, apps).
func apiOf(name string) string {
	return fmt.Sprintf("kube-apiserver.%s-%s.svc", objects.Namespace, name)
}

// serve all hosted clusters, each at its own address, and return their names' addresses.
func (b *bench) serve(ctx context.Context, quiet bool) (hosts map[string]string, err error) {
	if err := b.IsElsewhere(); err != nil {
		return nil, err
	}
	hosts = map[string]string{apiOf("good"): address(1)}
	if err := audited.Relay(ctx, endpoint(1), b.hosted.Admin.Host); err != nil {
		return nil, err
	}
	number := 1
	for name, e := range hostile {
		number++
		hosts[apiOf(name)] = address(number)
		if e.quiet = quiet; quiet {
			e.endless, e.fat = nil, nil
		}
		if err := startEvil(ctx, endpoint(number), apiOf(name), e); err != nil {
			return nil, err
		}
	}
	return hosts, nil
}

// goodHosted makes the good cluster's clients, and lets node-bootstrapper create CSRs there.
func (b *bench) goodHosted(ctx context.Context) (err error) {
	b.hosted.Admin.QPS = -1
	b.admin, b.kubelet, err = objects.Clients(ctx, b.hosted.Admin)
	return err
}

// bridgeNames: all but the first have hostile clusters.
var bridgeNames = []string{"good", "evil1", "evil2", "evil5", "evil6"}

// mostDPUs is how many can ask in one run.
const mostDPUs = 400

func (b *bench) bridges(ctx context.Context) error {
	all := objects.Shared()
	for i, name := range bridgeNames {
		all = append(all, objects.Bridge(i, name)...)
	}
	if err := objects.Create(ctx, b.api, all...); err != nil {
		return err
	}
	for i := range mostDPUs {
		if err := b.dpu(ctx, fmt.Sprintf("dpu-%d", i), "good"); err != nil {
			return err
		}
	}
	for _, name := range bridgeNames[1:] {
		for _, card := range hostile[name].cards {
			if err := b.dpu(ctx, host(card), name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) dpu(ctx context.Context, name, cluster string) error {
	return objects.CreateDPU(ctx, b.api, name, types.NamespacedName{Namespace: objects.Namespace, Name: cluster})
}

// infras are one that changes, and two with hostile hosted clusters.
func (b *bench) infras(ctx context.Context) error {
	for i, name := range []string{"changes", "evil3", "evil4"} {
		e, more := hostile[name], ""
		if e != nil {
			more = "  appsIngress: {enabled: true}\n"
		}
		if err := objects.CreateInfra(ctx, b.api, i, name, more); err != nil {
			return err
		}
		if e != nil {
			hc := &hyperv1.HostedCluster{}
			if err := b.api.Get(ctx, client.ObjectKey{Namespace: objects.Namespace, Name: name}, hc); err != nil {
				return err
			}
			kubeconfig, err := b.kubeconfig(e)
			if err != nil {
				return err
			}
			if err := hypershift.WriteKubeconfig(ctx, b.api, hc, kubeconfig); err != nil {
				return err
			}
			hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: name + "-admin-kubeconfig"}
			if err := b.api.Status().Update(ctx, hc); err != nil {
				return err
			}
		}
	}
	return nil
}

// kubeconfig for a hostile cluster, as HyperShift would write it.
func (b *bench) kubeconfig(e *evil) ([]byte, error) {
	return sigsyaml.Marshal(envtest.Kubeconfig("https://api.nowhere.example.com:6443", e.trust, b.Config))
}

// hyperShift serves a bridge's HostedCluster.
func (b *bench) hyperShift(ctx context.Context, name string) error {
	kubeconfig, err := b.hosted.Kubeconfig()
	if e := hostile[name]; e != nil {
		kubeconfig, err = b.kubeconfig(e)
	}
	if err != nil {
		return err
	}
	return objects.Serve(ctx, b.Cluster, b.api, name, kubeconfig)
}

// eventually polls until something is so.
func (b *bench) eventually(ctx context.Context, what string, so func() (bool, error)) error {
	for {
		if is, err := so(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// approves: the manager approves a CSR of a DPU of the good cluster.
func (b *bench) approves(ctx context.Context) error {
	if b.dpus == mostDPUs {
		return fmt.Errorf("all %d DPUs have joined: choose a shorter run", mostDPUs)
	}
	name := fmt.Sprintf("dpu-%d", b.dpus)
	b.dpus++
	r, err := firstCSR(name)
	if err != nil {
		return err
	}
	if _, err := b.kubelet.CertificatesV1().CertificateSigningRequests().Create(ctx, r, metav1.CreateOptions{}); err != nil {
		return err
	}
	return b.eventually(ctx, "CSR "+name+" is not approved", func() (bool, error) {
		r, err := b.admin.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(r.Status.Conditions, func(c certv1.CertificateSigningRequestCondition) bool {
			return c.Type == certv1.CertificateApproved
		}), err
	})
}

// appliesInfra: a name added to an Infra gets to the ProxyServer.
func (b *bench) appliesInfra(ctx context.Context) error {
	b.rounds++
	host := fmt.Sprintf("h%d.example.com", b.rounds)
	infra, proxy := &v1alpha1.Infra{ObjectMeta: objects.At("changes")}, &v1alpha1.ProxyServer{}
	patch := fmt.Sprintf(`{"spec":{"extraEndpoints":[{"name":"mirror","hostnames":[%q],"port":8443,"protocol":"TLS","target":{"service":"mirror","port":8443}}]}}`, host)
	if err := b.api.Patch(ctx, infra, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return err
	}
	return b.eventually(ctx, "the ProxyServer does not have "+host, func() (bool, error) {
		err := b.api.Get(ctx, client.ObjectKey{Namespace: objects.Namespace, Name: "changes-proxy"}, proxy)
		return err == nil && slices.ContainsFunc(proxy.Spec.Backends, func(e v1alpha1.ProxyBackend) bool {
			return string(e.Hostname) == host
		}), client.IgnoreNotFound(err)
	})
}

// appliesBridge: a change of a bridge gets to the HostedCluster.
func (b *bench) appliesBridge(ctx context.Context) error {
	want := []hyperv1.AvailabilityPolicy{hyperv1.SingleReplica, hyperv1.HighlyAvailable}[b.rounds%2]
	good, hc := &dpuv1.DPUHCPBridge{ObjectMeta: objects.At("good")}, &hyperv1.HostedCluster{}
	if err := b.api.Patch(ctx, good, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"infrastructureAvailabilityPolicy":%q}}`, want))); err != nil {
		return err
	}
	return b.eventually(ctx, "the HostedCluster is not "+string(want), func() (bool, error) {
		err := b.api.Get(ctx, client.ObjectKeyFromObject(good), hc)
		return hc.Spec.InfrastructureAvailabilityPolicy == want, err
	})
}
