// Package bridge says what the operator may do for bridges to DPUs: `make generate` writes it into config/rbac/bridge_role.yaml.
// It has nothing of certificates.k8s.io: certificates are approved in a hosted cluster, by that cluster's kubeconfig. But for bridges
// themselves it only reads: Secrets, and what is written for bridges, are granted in one namespace at a time, by
// config/components/dpu-bridge and metallb.
package bridge

// Its own kind, in any namespace: one that is granted nothing has to be told so, and may go. To delete one is for those whose
// DPUCluster is gone and who want to go with it.
// +kubebuilder:rbac:groups=provisioning.dpu.hcp.io,resources=dpuhcpbridges,verbs=delete;get;list;patch;watch
// +kubebuilder:rbac:groups=provisioning.dpu.hcp.io,resources=dpuhcpbridges/status,verbs=patch

// What it makes, where it is read. A deletion reads from the API server itself, where nothing is granted any more, too; so does who
// looks for the mapping, a ConfigMap. Of HostedClusters those of others count: whose is a control plane's namespace?
// +kubebuilder:rbac:groups=hypershift.openshift.io,resources=hostedclusters;nodepools,verbs=get;list;watch
// +kubebuilder:rbac:groups=metallb.io,resources=ipaddresspools;l2advertisements,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// What it refers to.
// +kubebuilder:rbac:groups=provisioning.dpu.nvidia.com,resources=dpuclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=provisioning.dpu.nvidia.com,resources=bfbs;dpuflavors;dpus,verbs=list;watch
// +kubebuilder:rbac:groups=svc.dpu.nvidia.com,resources=dpudeployments;dpuserviceconfigurations;dpuservicetemplates,verbs=list;watch
// +kubebuilder:rbac:groups=operator.dpu.nvidia.com,resources=dpfoperatorconfigs,verbs=list;watch
// What it makes DPUServiceTemplates from: the image of OVN-Kubernetes on the hosts, and whether it runs on DPUs.
// +kubebuilder:rbac:groups=apps,resources=daemonsets,resourceNames=ovnkube-node-dpu-host,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// Where zero-trust DPUs download DPF's agent, if DPFOperatorConfig does not say: the node port of DPF's registry.
// +kubebuilder:rbac:groups="",resources=services,resourceNames=bfb-registry,verbs=get
// The management cluster's own networks, which those of a hosted cluster must not overlap.
// +kubebuilder:rbac:groups=config.openshift.io,resources=networks,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list;watch
// Where images are looked for besides the repository: OpenShift's mirrors.
// +kubebuilder:rbac:groups=config.openshift.io,resources=imagedigestmirrorsets;imagetagmirrorsets,verbs=list;watch
// Which ConfigMaps have the CAs of registries.
// +kubebuilder:rbac:groups=config.openshift.io,resources=images;proxies,verbs=list;watch
// Whether the namespace of its control plane is another's.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
