// Package bridge says what the operator may do for bridges to DPUs: `make generate` writes it into config/rbac/bridge_role.yaml.
// It has nothing of certificates.k8s.io: certificates are approved in a hosted cluster, by that cluster's kubeconfig. Secrets are
// granted in one namespace at a time, by config/components/dpu-bridge.
package bridge

// Its own kind. To delete one is for those whose DPUCluster is gone and who want to go with it.
// +kubebuilder:rbac:groups=provisioning.dpu.hcp.io,resources=dpuhcpbridges,verbs=delete;get;list;patch;watch
// +kubebuilder:rbac:groups=provisioning.dpu.hcp.io,resources=dpuhcpbridges/status,verbs=patch

// What it makes. A deletion reads from the API server itself.
// +kubebuilder:rbac:groups=hypershift.openshift.io,resources=hostedclusters;nodepools,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=metallb.io,resources=ipaddresspools;l2advertisements,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;delete;get;list;patch;watch

// What it refers to.
// +kubebuilder:rbac:groups=provisioning.dpu.nvidia.com,resources=dpuclusters,verbs=get;list;patch;watch
// +kubebuilder:rbac:groups=provisioning.dpu.nvidia.com,resources=dpuclusters/status,verbs=patch
// +kubebuilder:rbac:groups=provisioning.dpu.nvidia.com,resources=dpus,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// Whether the namespace of its control plane is another's.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
