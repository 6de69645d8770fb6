// Package objects makes the objects that several benchmarks need.
package objects

import (
	"context"
	"fmt"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
)

const (
	// Namespace of Infras and bridges.
	Namespace = "clusters"
	// Release that a bridge requests.
	Release = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
)

// At is the metadata of a name in Namespace.
func At(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }

// Create all, in order.
func Create(ctx context.Context, api client.Client, all ...client.Object) error {
	for _, o := range all {
		if err := api.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

// Shared is what all bridges refer to.
func Shared() []client.Object {
	isDefault := map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metallb-system"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: isDefault}, Provisioner: "example.com/fast"},
		Images("ocp-bluefield-images"),
	}
}

// Images is the mapping that has the Release.
func Images(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"4.20.4": "quay.io/example/bluefield:4.20.4"}}
}

// SSHKey is one that a bridge accepts.
func SSHKey(at metav1.ObjectMeta) *corev1.Secret {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	return &corev1.Secret{ObjectMeta: at, Data: map[string][]byte{bridge.SSHKeyKey: []byte(key)}}
}

// PullSecret is one that a bridge accepts.
func PullSecret(at metav1.ObjectMeta) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: at, Data: map[string][]byte{bridge.PullSecretKey: []byte(`{"auths": {"quay.io": {"auth": "dTpw"}}}`)}}
}

// Bridge is the nth, with a DPUCluster and Secrets of its own.
func Bridge(n int, name string) []client.Object {
	return []client.Object{
		SSHKey(At(name + "-ssh")), PullSecret(At(name + "-pull")),
		&dpf.DPUCluster{ObjectMeta: At(name), Spec: dpf.DPUClusterSpec{Type: "example.com/hosted"}},
		&dpuv1.DPUHCPBridge{ObjectMeta: At(name), Spec: dpuv1.DPUHCPBridgeSpec{
			DPUClusterRef: dpuv1.DPUClusterReference{Name: v1alpha1.ObjectName(name)}, BaseDomain: "example.com", OCPReleaseImage: Release,
			SSHKey: dpuv1.SecretName(name + "-ssh"), PullSecret: dpuv1.SecretName(name + "-pull"),
			ExposeThroughLoadBalancer: true, MetalLBVirtualIP: v1alpha1.IPAddress(fmt.Sprintf("198.18.%d.%d", n/250, 1+n%250)),
		}},
	}
}

// Serve makes a bridge's HostedCluster available as HyperShift does, as soon as the manager creates it.
func Serve(ctx context.Context, c *audited.Cluster, api client.Client, name string, kubeconfig []byte) error {
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	for _, o := range []client.Object{hc, pool} {
		err := c.Until(ctx, func() (bool, error) {
			err := api.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, o)
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	if err := hypershift.Serve(ctx, api, hc, pool, kubeconfig); err != nil {
		return fmt.Errorf("serving HostedCluster %s: %w", name, err)
	}
	return nil
}
