package moving

// field says what becomes of a field of a DPFHCPProvisioner's spec (its api/v1alpha1/dpfhcpprovisioner_types.go).
type field struct {
	// theirs and ours are paths below spec; ours is empty while a bridge has no such field.
	theirs, ours string
	// unset is what the public operator takes where nothing is written, if a bridge takes something else.
	unset any
	// says what follows for a hosted cluster if a bridge has no such field.
	says string
}

var fields = []field{
	{theirs: "dpuClusterRef", ours: "dpuClusterRef"},
	{theirs: "baseDomain", ours: "baseDomain"},
	{theirs: "ocpReleaseImage", ours: "ocpReleaseImage"},
	{theirs: "sshKeySecretRef.name", ours: "sshKey"},
	{theirs: "pullSecretRef.name", ours: "pullSecret"},
	{theirs: "etcdStorageClass", ours: "etcdStorageClass"},
	{theirs: "controlPlaneAvailabilityPolicy", ours: "controlPlaneAvailabilityPolicy"},
	{theirs: "virtualIP", ours: virtualIP},
	{theirs: "machineOSURL", ours: "machineOSImage"},
	{theirs: "dpuDeploymentRef", says: "bridges make no bf.cfg templates yet: keep ConfigMap bfcfg-<DPUCluster>.cfg, which DPUs are installed from"},
	{theirs: "flannelEnabled", unset: true, says: "HyperShift then allocates no pod networks to Nodes, which Flannel needs; OVN-Kubernetes does not"},
	{theirs: "nodeSelector", unset: map[string]any{"node-role.kubernetes.io/control-plane": ""}, says: "the control plane may run on any node"},
	{theirs: "networking", says: "a bridge's hosted cluster has pod network 10.132.0.0/14 and service network 172.31.0.0/16"},
}

// Fields of a bridge that follow from another.
const (
	virtualIP = "metalLBVirtualIP"
	exposed   = "exposeThroughLoadBalancer"
	// hostedReplicas is left to HyperShift by the public operator, whose default is not a bridge's (hypershift: hostedcluster_types.go).
	hostedReplicas, hostedDefault = "infrastructureAvailabilityPolicy", "SingleReplica"
)

// settings say what to do about the fields of a DPFHCPProvisionerConfig that are written.
var settings = []field{
	{theirs: "blueFieldOCPLayerRepo", says: "write a key for each release into ConfigMap ocp-bluefield-images of the operator's namespace, or set machineOSImage in each bridge"},
	{theirs: "disableMetalLB", says: "a bridge with metalLBVirtualIP has MetalLB announce the address. If another load balancer does, use controlPlaneAvailabilityPolicy: SingleReplica, and exposeThroughLoadBalancer without an address"},
	{theirs: "manageDPUServiceTemplates", says: "create the DPUServiceTemplates that your DPUDeployment names yourself, or keep those that exist"},
	{theirs: "dpuServicesImagePullSecret", says: "name the pull Secret in the DPUServiceTemplates"},
	{theirs: "ovsHugepagesSize", says: "reserve the hugepages of OVS in the hosted cluster yourself, e.g. by a DaemonSet that requests them"},
	{theirs: "ovsHugepagesAmount", says: "reserve the hugepages of OVS in the hosted cluster yourself, e.g. by a DaemonSet that requests them"},
}
