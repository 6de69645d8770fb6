package v1alpha1

// Condition types that mirror those of the HostedCluster: status, reason and message are HyperShift's. Unknown/NotReported while
// the HostedCluster does not have the condition.
const (
	// ConditionHostedClusterAvailable mirrors Available: the control plane is healthy.
	ConditionHostedClusterAvailable = "HostedClusterAvailable"
	// ConditionHostedClusterProgressing mirrors Progressing: a deployment or an upgrade is in progress.
	ConditionHostedClusterProgressing = "HostedClusterProgressing"
	// ConditionHostedClusterDegraded mirrors Degraded: an error may need action by a user.
	ConditionHostedClusterDegraded = "HostedClusterDegraded"
	// ConditionInfrastructureReady mirrors InfrastructureReady: what the control plane needs exists, e.g. its load balancer.
	ConditionInfrastructureReady = "InfrastructureReady"
	// ConditionKubeAPIServerAvailable mirrors KubeAPIServerAvailable.
	ConditionKubeAPIServerAvailable = "KubeAPIServerAvailable"
	// ConditionEtcdAvailable mirrors EtcdAvailable.
	ConditionEtcdAvailable = "EtcdAvailable"
	// ConditionValidReleaseInfo mirrors ValidReleaseInfo: the release has all images that HyperShift uses.
	ConditionValidReleaseInfo = "ValidReleaseInfo"
	// ConditionIgnitionEndpointAvailable mirrors IgnitionEndpointAvailable.
	ConditionIgnitionEndpointAvailable = "IgnitionEndpointAvailable"
	// ConditionIgnitionServerValidReleaseInfo mirrors IgnitionServerValidReleaseInfo: the release has all images that ignition uses.
	ConditionIgnitionServerValidReleaseInfo = "IgnitionServerValidReleaseInfo"
	// ConditionValidReleaseImage mirrors ValidReleaseImage: HyperShift accepts ocpReleaseImage.
	ConditionValidReleaseImage = "ValidReleaseImage"
	// ConditionEtcdRecoveryActive mirrors EtcdRecoveryActive: etcd fails and is being recovered.
	ConditionEtcdRecoveryActive = "EtcdRecoveryActive"
	// ConditionHostedClusterRestoredFromBackup mirrors HostedClusterRestoredFromBackup.
	ConditionHostedClusterRestoredFromBackup = "HostedClusterRestoredFromBackup"
	// ConditionDataPlaneConnectionAvailable mirrors DataPlaneConnectionAvailable: the control plane reaches its nodes.
	ConditionDataPlaneConnectionAvailable = "DataPlaneConnectionAvailable"
)

// Condition types of the bridge itself. Each begins as Unknown.
const (
	// ConditionDPUClusterBound: the DPUCluster exists, has the right type, and no other bridge uses it.
	ConditionDPUClusterBound = "DPUClusterBound"
	// ConditionSecretsValid: the Secrets of sshKey and pullSecret can be read and are valid.
	ConditionSecretsValid = "SecretsValid"
	// ConditionBlueFieldContainerImageAvailable: the image mapping has a BlueField container image for ocpReleaseImage.
	ConditionBlueFieldContainerImageAvailable = "BlueFieldContainerImageAvailable"
	// ConditionMetalLBConfigured: MetalLB is configured to assign metalLBVirtualIP to the control plane.
	ConditionMetalLBConfigured = "MetalLBConfigured"
	// ConditionIgnitionConfigured: the NodePool's ignition pins the OS image.
	ConditionIgnitionConfigured = "IgnitionConfigured"
	// ConditionServiceTemplatesReady: what the services of the DPUDeployment need exists. Present while the bridge refers to a
	// DPUDeployment that exists.
	ConditionServiceTemplatesReady = "ServiceTemplatesReady"
	// ConditionKubeconfigInjected: the DPUCluster refers to the hosted cluster's current kubeconfig.
	ConditionKubeconfigInjected = "KubeconfigInjected"
	// ConditionCSRAutoApprovalActive: the operator watches CSRs of DPUs in the hosted cluster.
	ConditionCSRAutoApprovalActive = "CSRAutoApprovalActive"
	// ConditionPrivilegedPodsAllowed: pods of DPF's services may use OpenShift's SCC privileged in the hosted cluster. Ready does not
	// depend on it.
	ConditionPrivilegedPodsAllowed = "PrivilegedPodsAllowed"
	// ConditionHostedClusterCleanup: progress of the deletion. Present once the bridge is being deleted.
	ConditionHostedClusterCleanup = "HostedClusterCleanup"
	// ConditionReady: DPUs can join. kubectl prints its reason as the phase.
	ConditionReady = "Ready"
)

// Reasons that programs may rely on; docs/reference/bridge.md lists all reasons.
const (
	// ReasonNotReported: the HostedCluster does not have the mirrored condition.
	ReasonNotReported = "NotReported"
	// ReasonTemplatesAmbiguous: IgnitionConfigured while a DPU has a second template, which is not the bridge's: DPF then does not install it.
	ReasonTemplatesAmbiguous = "TemplatesAmbiguous"
	// ReasonCleanupInProgress: HostedClusterCleanup while something still exists.
	ReasonCleanupInProgress = "InProgress"
	// ReasonCleanupDPUsAttached: HostedClusterCleanup while DPUs of the DPUCluster exist. DPF needs the bridge to remove their
	// Nodes.
	ReasonCleanupDPUsAttached = "DPUsAttached"
	// ReasonCleanupFailed: HostedClusterCleanup when a deletion was refused; the operator tries again.
	ReasonCleanupFailed = "Failed"
	// ReasonCleanupSucceeded: HostedClusterCleanup just before the bridge is removed.
	ReasonCleanupSucceeded = "Succeeded"
)
