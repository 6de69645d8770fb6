package standin

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const releaseImage = "e2e.local/release:1"

func (c Cluster) release() string { return c.hostedCluster().Spec.Release.Image }

// machineNetwork contains any lab VLAN: nothing here depends on it.
const machineNetwork = "192.168.0.0/16"

// hostedCluster is what `hypershift create cluster kubevirt` writes, or the adopted one.
func (c Cluster) hostedCluster() *hyperv1.HostedCluster {
	if c.adopted != nil {
		return c.adopted
	}
	return &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: HostedClusterNamespace},
		Spec: hyperv1.HostedClusterSpec{
			Release: hyperv1.Release{Image: releaseImage}, InfraID: c.infraID(),
			Platform: c.platform(), DNS: hyperv1.DNSSpec{BaseDomain: c.BaseDomain}, Networking: c.networking(), Etcd: managedEtcd(),
			ControllerAvailabilityPolicy: hyperv1.SingleReplica, OLMCatalogPlacement: hyperv1.ManagementOLMCatalogPlacement,
			Services: c.services(), PullSecret: corev1.LocalObjectReference{Name: c.pullSecret()},
		},
	}
}

func (c Cluster) platform() hyperv1.PlatformSpec {
	return hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{GenerateID: "standin"}}
}

func (c Cluster) networking() hyperv1.ClusterNetworking {
	cidr := func(text string) ipnet.IPNet { return *ipnet.MustParseCIDR(text) }
	return hyperv1.ClusterNetworking{
		NetworkType:    hyperv1.OVNKubernetes,
		MachineNetwork: []hyperv1.MachineNetworkEntry{{CIDR: cidr(machineNetwork)}},
		ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: cidr(clusterNetwork)}},
		ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: cidr(serviceNetwork)}},
	}
}

func managedEtcd() hyperv1.EtcdSpec {
	return hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
		Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage,
			PersistentVolume: &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("8Gi"))}},
	}}
}

func (c Cluster) pool() *hyperv1.NodePool {
	return &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: c.nodePool(), Namespace: HostedClusterNamespace},
		Spec: hyperv1.NodePoolSpec{
			ClusterName: c.Name, Release: hyperv1.Release{Image: releaseImage}, Arch: hyperv1.ArchitectureAMD64, Replicas: ptr.To[int32](2),
			Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
			Platform: hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtNodePoolPlatform{
				AttachDefaultNetwork: ptr.To(false),
				AdditionalNetworks:   []hyperv1.KubevirtNetwork{{Name: c.AttachedTo}},
				Compute:              &hyperv1.KubevirtCompute{Cores: ptr.To[uint32](1), Memory: ptr.To(resource.MustParse("2Gi"))},
				RootVolume: &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent,
					Persistent: &hyperv1.KubevirtPersistentVolume{Size: ptr.To(resource.MustParse("32Gi"))}}},
			}},
		},
	}
}

// hasMachines: HyperShift runs Cluster API and a machine approver for every platform but None.
func (c Cluster) hasMachines() bool {
	return c.hostedCluster().Spec.Platform.Type != hyperv1.NonePlatform
}

func (c Cluster) hostedControlPlane() *hyperv1.HostedControlPlane {
	hc := c.hostedCluster().Spec
	return &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace(), Labels: c.hostedCluster().Labels,
			Annotations: map[string]string{hostedClusterAnno: HostedClusterNamespace + "/" + c.Name}},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: hc.Release.Image, InfraID: hc.InfraID, Platform: hc.Platform, DNS: hc.DNS, Networking: hc.Networking, Etcd: hc.Etcd,
			ControllerAvailabilityPolicy: hc.ControllerAvailabilityPolicy, OLMCatalogPlacement: hc.OLMCatalogPlacement,
			Services: hc.Services, PullSecret: hc.PullSecret, IssuerURL: "https://kubernetes.default.svc",
		},
	}
}

// ordered is what a person, or HyperShift for that person, creates first.
func (c Cluster) ordered() []client.Object {
	pullSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.pullSecret(), Namespace: HostedClusterNamespace},
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}
	return []client.Object{pullSecret, c.hostedCluster(), c.pool(), c.hostedControlPlane()}
}

// status is the HostedCluster's, field by field as hypershift-operator writes it. With NodePort, the port is the one assigned to the
// Service. Conditions continue the existing ones.
func (c Cluster) status(nodePorts map[string]int32, available bool, conditions []metav1.Condition) hyperv1.HostedClusterStatus {
	conditions = slices.Clone(conditions)
	for _, kind := range []hyperv1.ConditionType{hyperv1.HostedClusterAvailable, hyperv1.IgnitionEndpointAvailable, hyperv1.InfrastructureReady, hyperv1.KubeAPIServerAvailable, hyperv1.EtcdAvailable} {
		meta.SetStatusCondition(&conditions, condition(kind, available))
	}
	for _, kind := range []hyperv1.ConditionType{hyperv1.ValidReleaseImage, hyperv1.ValidReleaseInfo, hyperv1.IgnitionServerValidReleaseInfo} {
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: hyperv1.AllIsWellMessage})
	}
	meta.SetStatusCondition(&conditions, progressing(!available))
	return hyperv1.HostedClusterStatus{
		KubeConfig:               &corev1.LocalObjectReference{Name: c.adminKubeconfig()},
		ControlPlaneEndpoint:     hyperv1.APIEndpoint{Host: c.host(kubeAPIServer), Port: c.port(kubeAPIServer, nodePorts)},
		IgnitionEndpoint:         c.ignitionEndpoint(nodePorts),
		OAuthCallbackURLTemplate: fmt.Sprintf("https://%s/oauth2callback/[identity-provider-name]", hostPort(c.host(oauthServer), c.port(oauthServer, nodePorts))),
		PayloadArch:              hyperv1.AMD64,
		Conditions:               conditions,
	}
}

// ignitionEndpoint has a port only if that is a node port.
func (c Cluster) ignitionEndpoint(nodePorts map[string]int32) string {
	if c.Strategy == NodePort {
		return hostPort(c.host(ignitionServerProxy), c.port(ignitionServerProxy, nodePorts))
	}
	return c.host(ignitionServerProxy)
}

func condition(kind hyperv1.ConditionType, available bool) metav1.Condition {
	if available {
		return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: "The hosted control plane is available"}
	}
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse, Reason: hyperv1.WaitingForAvailableReason, Message: "The hosted control plane is not yet available"}
}

func progressing(yes bool) metav1.Condition {
	if yes {
		return metav1.Condition{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionTrue, Reason: "Progressing", Message: "HostedCluster is deploying, upgrading, or reconfiguring"}
	}
	return metav1.Condition{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: hyperv1.AsExpectedReason, Message: "HostedCluster is at expected version"}
}

func hostPort(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
