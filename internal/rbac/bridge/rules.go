// Package bridge says what the operator may do for bridges to DPUs: `make generate` writes it into config/rbac/bridge_role.yaml.
// It has nothing of certificates.k8s.io: certificates are approved in a hosted cluster, by that cluster's kubeconfig. Secrets are
// granted in one namespace at a time, by config/components/dpu-bridge.
package bridge

// Its own kind.
// +kubebuilder:rbac:groups=provisioning.dpu.hcp.io,resources=dpuhcpbridges,verbs=list;watch
