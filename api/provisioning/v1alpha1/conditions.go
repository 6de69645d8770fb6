package v1alpha1

// Condition types that mirror the HostedCluster's: status, reason and message are HyperShift's. Unknown/NotReported while the
// HostedCluster does not have it.
const (
	// ConditionHostedClusterAvailable mirrors Available: the control plane is healthy.
	ConditionHostedClusterAvailable = "HostedClusterAvailable"
	// ConditionHostedClusterProgressing mirrors Progressing: a first deployment or an upgrade goes on.
	ConditionHostedClusterProgressing = "HostedClusterProgressing"
	// ConditionHostedClusterDegraded mirrors Degraded: an error may need its user.
	ConditionHostedClusterDegraded = "HostedClusterDegraded"
	// ConditionInfrastructureReady mirrors InfrastructureReady: what a control plane stands on is there, e.g. its load balancer.
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
	// ConditionValidReleaseImage mirrors ValidReleaseImage: HyperShift takes ocpReleaseImage.
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
	// ConditionDPUClusterBound: the DPUCluster is there, of the right type, and this bridge's alone.
	ConditionDPUClusterBound = "DPUClusterBound"
	// ConditionSecretsValid: sshKey and pullSecret name Secrets that can be read and hold what they should.
	ConditionSecretsValid = "SecretsValid"
	// ConditionBlueFieldContainerImageAvailable: the image mapping has a BlueField container image for ocpReleaseImage.
	ConditionBlueFieldContainerImageAvailable = "BlueFieldContainerImageAvailable"
	// ConditionMetalLBConfigured: MetalLB has what gives the control plane metalLBVirtualIP.
	ConditionMetalLBConfigured = "MetalLBConfigured"
	// ConditionIgnitionConfigured: the NodePool's ignition pins the OS image.
	ConditionIgnitionConfigured = "IgnitionConfigured"
	// ConditionKubeconfigInjected: the DPUCluster refers to the hosted cluster's kubeconfig as it is now.
	ConditionKubeconfigInjected = "KubeconfigInjected"
	// ConditionCSRAutoApprovalActive: certificate requests of DPUs are watched in the hosted cluster.
	ConditionCSRAutoApprovalActive = "CSRAutoApprovalActive"
	// ConditionHostedClusterCleanup: how far deletion got. Present once the bridge is being deleted.
	ConditionHostedClusterCleanup = "HostedClusterCleanup"
	// ConditionReady: DPUs can join. Its reason is what kubectl prints as the phase.
	ConditionReady = "Ready"
)

// Reasons that programs may rely on; docs/DPU_BRIDGE.md has all of them.
const (
	// ReasonNotReported is a mirrored condition's that the HostedCluster does not have.
	ReasonNotReported = "NotReported"
	// ReasonCleanupInProgress: HostedClusterCleanup while something is still there.
	ReasonCleanupInProgress = "InProgress"
	// ReasonCleanupDPUsAttached: HostedClusterCleanup while DPUs of the DPUCluster exist: DPF removes their Nodes through us.
	ReasonCleanupDPUsAttached = "DPUsAttached"
	// ReasonCleanupFailed: HostedClusterCleanup when a deletion was refused; the operator tries again.
	ReasonCleanupFailed = "Failed"
	// ReasonCleanupSucceeded: HostedClusterCleanup right before the bridge goes.
	ReasonCleanupSucceeded = "Succeeded"
)
