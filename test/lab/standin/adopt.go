package standin

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer is HyperShift's, on HostedClusters and NodePools: they go after the control plane.
const finalizer = "hypershift.openshift.io/finalizer"

// Adopt brings up the control plane of a HostedCluster that somebody else made, as its spec says, and returns when it serves. Of c it uses
// only the name and the domain of Routes.
func (l *Lab) Adopt(ctx context.Context, c Cluster) error {
	hc, err := l.take(ctx, c)
	if err != nil {
		return err
	}
	if c, err = c.as(hc); err != nil {
		return err
	}
	if err := apply(ctx, l.client, namespace(c.Namespace(), controlPlaneNamespaceLabels), c.hostedControlPlane()); err != nil {
		return err
	}
	return l.bringUp(ctx, c)
}

// take does what HyperShift does first with a HostedCluster and its NodePool: it adds a finalizer to both, writes identifiers into the spec
// (hostedcluster_controller.go, defaultClusterIDsIfNeeded) and the NodePool's version of its configuration (capi.go), and reads what they
// refer to.
func (l *Lab) take(ctx context.Context, c Cluster) (*hyperv1.HostedCluster, error) {
	key := client.ObjectKey{Namespace: HostedClusterNamespace, Name: c.Name}
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	err := l.update(ctx, key, hc, func() {
		controllerutil.AddFinalizer(hc, finalizer)
		if hc.Spec.InfraID == "" {
			hc.Spec.InfraID, hc.Spec.ClusterID = hc.Name+"-lab", uuid.NewString()
		}
	})
	if err != nil {
		return nil, err
	}
	err = l.update(ctx, key, pool, func() {
		controllerutil.AddFinalizer(pool, finalizer)
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, configVersionAnno, c.configVersion())
	})
	if err != nil {
		return nil, err
	}
	return hc, l.read(ctx, hc, pool)
}

// update writes an object as a whole, as HyperShift does.
func (l *Lab) update(ctx context.Context, key client.ObjectKey, o client.Object, change func()) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := l.client.Get(ctx, key, o); err != nil {
			return err
		}
		change()
		return l.client.Update(ctx, o, fieldOwner)
	})
	if err != nil {
		return fmt.Errorf("writing %T %s: %w", o, key, err)
	}
	return nil
}

// read checks the objects that HyperShift copies into the control plane, and their keys.
func (l *Lab) read(ctx context.Context, hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) error {
	secrets := map[string]string{hc.Spec.PullSecret.Name: corev1.DockerConfigJsonKey, hc.Spec.SSHKey.Name: "id_rsa.pub"}
	if e := hc.Spec.SecretEncryption; e != nil && e.AESCBC != nil {
		secrets[e.AESCBC.ActiveKey.Name] = hyperv1.AESCBCKeySecretKey
	}
	for name, key := range secrets {
		s := &corev1.Secret{}
		if err := l.client.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: name}, s); err != nil {
			return fmt.Errorf("reading a Secret that HostedCluster %s refers to: %w", hc.Name, err)
		}
		if len(s.Data[key]) == 0 {
			return fmt.Errorf("HostedCluster %s refers to Secret %s, which has nothing in key %s", hc.Name, name, key)
		}
	}
	for _, ref := range pool.Spec.Config {
		m := &corev1.ConfigMap{}
		if err := l.client.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: ref.Name}, m); err != nil {
			return fmt.Errorf("reading a ConfigMap that NodePool %s refers to: %w", pool.Name, err)
		}
		if m.Data["config"] == "" {
			return fmt.Errorf("NodePool %s refers to ConfigMap %s, which has nothing in key config", pool.Name, ref.Name)
		}
	}
	return nil
}

// as is the cluster that a HostedCluster's spec describes. The load balancer's address is not known yet.
func (c Cluster) as(hc *hyperv1.HostedCluster) (Cluster, error) {
	c.adopted, c.BaseDomain, c.LBAddress = hc, hc.Spec.DNS.BaseDomain, ""
	for _, s := range hc.Spec.Services {
		if s.NodePort != nil {
			c.NodeAddress = s.NodePort.Address
		}
	}
	for _, c.Strategy = range Strategies() {
		if samePublishing(c.services(), hc.Spec.Services) {
			return c, nil
		}
	}
	return c, fmt.Errorf("HostedCluster %s publishes its services in a way that is none of %v: %+v", hc.Name, Strategies(), hc.Spec.Services)
}

func samePublishing(a, b []hyperv1.ServicePublishingStrategyMapping) bool {
	in := func(all []hyperv1.ServicePublishingStrategyMapping) func(hyperv1.ServicePublishingStrategyMapping) bool {
		return func(one hyperv1.ServicePublishingStrategyMapping) bool {
			return slices.ContainsFunc(all, func(other hyperv1.ServicePublishingStrategyMapping) bool {
				return equality.Semantic.DeepEqual(one, other)
			})
		}
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one hyperv1.ServicePublishingStrategyMapping) bool { return !in(b)(one) })
}

// kubeconfigBeside is the admin kubeconfig beside the HostedCluster. HyperShift copies the HostedCluster's labels to it and makes the
// HostedCluster its owner (hostedcluster_controller.go): whoever looks for their own objects by those labels finds this one too.
func (c Cluster) kubeconfigBeside(content files) *corev1.Secret {
	hc := c.hostedCluster()
	s := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: content,
		ObjectMeta: metav1.ObjectMeta{Name: c.adminKubeconfig(), Namespace: HostedClusterNamespace, Labels: hc.Labels}}
	if hc.UID != "" {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: hc.Name, UID: hc.UID}}
	}
	return s
}

// letGo removes HyperShift's finalizer from what was adopted.
func (l *Lab) letGo(ctx context.Context, c Cluster) error {
	key := client.ObjectKey{Namespace: HostedClusterNamespace, Name: c.Name}
	for _, o := range []client.Object{&hyperv1.HostedCluster{}, &hyperv1.NodePool{}} {
		err := l.client.Get(ctx, key, o)
		if err == nil && controllerutil.RemoveFinalizer(o, finalizer) {
			err = l.client.Update(ctx, o, fieldOwner)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("letting %T %s go: %w", o, key, err)
		}
	}
	return nil
}
