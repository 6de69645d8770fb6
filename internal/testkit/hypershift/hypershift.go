// Package hypershift plays HyperShift for HostedClusters that others create: it reports a control plane, without one.
package hypershift

import (
	"context"
	"maps"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
)

// Finalizer is HyperShift's on what it has to tear down.
const Finalizer = "hypershift.openshift.io/finalizer"

// Serve writes what HyperShift would to a HostedCluster and its NodePool: finalizers, spec fields, the kubeconfig, the conditions.
func Serve(ctx context.Context, api client.Client, hc *hyperv1.HostedCluster, pool *hyperv1.NodePool, kubeconfig []byte) error {
	before := hc.DeepCopy()
	controllerutil.AddFinalizer(hc, Finalizer)
	hc.Spec.ClusterID, hc.Spec.InfraID = "7b3d2c1a-0000-4000-8000-000000000001", hc.Name+"-x"
	if err := api.Patch(ctx, hc, client.MergeFrom(before)); err != nil {
		return err
	}
	poolBefore := pool.DeepCopy()
	controllerutil.AddFinalizer(pool, Finalizer)
	if err := api.Patch(ctx, pool, client.MergeFrom(poolBefore)); err != nil {
		return err
	}
	if err := WriteKubeconfig(ctx, api, hc, kubeconfig); err != nil {
		return err
	}
	before = hc.DeepCopy()
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: kubeconfigOf(hc)}
	hc.Status.Conditions = nil
	for _, kind := range []hyperv1.ConditionType{hyperv1.HostedClusterAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.InfrastructureReady} {
		meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "well"})
	}
	return api.Status().Patch(ctx, hc, client.MergeFrom(before))
}

// RollOut reports that a HostedCluster's control plane runs its release, and that the ignition of its NodePool is served at a host for a token,
// which is the hash of the NodePool's configuration, too.
func RollOut(ctx context.Context, api client.Client, hc *hyperv1.HostedCluster, pool *hyperv1.NodePool, host, token string) error {
	key := endpoint.IgnitionToken(endpoint.ControlPlaneNamespace(hc), pool.Name, token)
	err := api.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{endpoint.TokenNodePool: client.ObjectKeyFromObject(pool).String()}},
		Data:       map[string][]byte{endpoint.TokenKey: []byte(token), endpoint.TokenRelease: []byte(hc.Spec.Release.Image)},
	})
	if err != nil {
		return err
	}
	poolBefore := pool.DeepCopy()
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, names.AnnotationConfigVersion, token)
	if err := api.Patch(ctx, pool, client.MergeFrom(poolBefore)); err != nil {
		return err
	}
	before := hc.DeepCopy()
	hc.Status.IgnitionEndpoint = host
	meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: "AsExpected", ObservedGeneration: hc.Generation})
	return api.Status().Patch(ctx, hc, client.MergeFrom(before))
}

// WriteKubeconfig creates or rotates the kubeconfig's Secret, which gets the HostedCluster's labels.
func WriteKubeconfig(ctx context.Context, api client.Client, hc *hyperv1.HostedCluster, kubeconfig []byte) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hc.Namespace, Name: kubeconfigOf(hc)}}
	_, err := controllerutil.CreateOrUpdate(ctx, api, s, func() error {
		s.Labels, s.Data = maps.Clone(hc.Labels), map[string][]byte{"kubeconfig": kubeconfig}
		return nil
	})
	return err
}

func kubeconfigOf(hc *hyperv1.HostedCluster) string { return hc.Name + "-admin-kubeconfig" }
