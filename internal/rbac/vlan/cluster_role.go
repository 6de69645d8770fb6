// Package vlan says what the operator may do for services on VLANs: `make generate` writes it into config/rbac/vlan_role.yaml.
// What it puts into the Roles of daemons it has to hold itself.
package vlan

// Its own kinds. blockOwnerDeletion needs update on finalizers where OwnerReferencesPermissionEnforcement runs (OpenShift).
// That plugin also wants delete of who changes an Infra's ownerReferences: it is released, and taken back, by them.
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=infras,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=dhcpservers;dnsservers;proxyservers,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=infras/status;dhcpservers/status;dnsservers/status;proxyservers/status,verbs=patch
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=infras/finalizers;dhcpservers/finalizers;dnsservers/finalizers;proxyservers/finalizers,verbs=update
// The finalizer forgets leases; all other verbs are granted to the daemons.
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=dhcpleases,verbs=create;deletecollection;get;list;update;watch
// +kubebuilder:rbac:groups=hostedcluster.densityops.com,resources=dhcpleases/status,verbs=patch

// Workloads of the daemons.
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=configmaps;serviceaccounts;services,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=create;delete;get;list;patch;watch
// Pods that pull images before the pod that serves is replaced.
// +kubebuilder:rbac:groups="",resources=pods,verbs=create;delete;patch
// The daemons' events, and what the kubelet says of a pod that does not start.
// +kubebuilder:rbac:groups="",resources=events,verbs=create;list

// What is read of others, by a cache, which gets nothing one by one.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=hypershift.openshift.io,resources=hostedclusters;hostedcontrolplanes;nodepools,verbs=list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch
// What daemons are granted to read; virtual machines are read by them only, pods by us where one holds up the end of an Infra.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines;virtualmachineinstances,verbs=get;list;watch

// The management cluster's own networks, hidden from VLANs.
// +kubebuilder:rbac:groups=config.openshift.io,resources=networks,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
