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
	{theirs: "dpuDeploymentRef", ours: "dpuDeploymentRef"},
	{theirs: "flannelEnabled", ours: "flannelEnabled"},
	{theirs: "nodeSelector", ours: "nodeSelector", unset: map[string]any{"node-role.kubernetes.io/control-plane": ""}},
	{theirs: "networking", ours: "networking"},
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
	{theirs: "blueFieldOCPLayerRepo", says: "write it under key repository into ConfigMap ocp-bluefield-images of the operator's namespace"},
	{theirs: "disableMetalLB", says: "a bridge with metalLBVirtualIP has MetalLB announce the address. If another load balancer does, use controlPlaneAvailabilityPolicy: SingleReplica, and exposeThroughLoadBalancer without an address"},
	{theirs: "manageDPUServiceTemplates", says: "set manageDPUServiceTemplates in each bridge"},
	{theirs: "dpuServicesImagePullSecret", says: "name the pull Secret in the DPUServiceTemplates"},
	{theirs: "ovsHugepagesSize", says: "500Mi are held on each DPU whose kernel reserves as many; to hold others, write them in systemReservedResources of the DPUFlavor, e.g. hugepages-2Mi: 1Gi"},
	{theirs: "ovsHugepagesAmount", says: "500Mi are held on each DPU whose kernel reserves as many; to hold others, write them in systemReservedResources of the DPUFlavor, e.g. hugepages-2Mi: 1Gi"},
}
