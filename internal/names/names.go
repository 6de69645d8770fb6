// Package names holds what the product calls its objects, labels, annotations and its own ports. Ports of hosted
// control planes are not here: the endpoint table is their only home.
package names

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
)

// Group is the prefix of every label, annotation and finalizer.
const Group = "hostedcluster.densityops.com"

// BridgeGroup is the prefix of what DPUHCPBridges put on objects.
const BridgeGroup = "provisioning.dpu.hcp.io"

// Labels that every object of ours carries. Selectors always include the instance.
const (
	// LabelInfra is the name of the Infra that an object belongs to.
	LabelInfra = Group + "/infra"
	// LabelInfraNamespace is that Infra's namespace; on objects in other namespaces and on leases.
	LabelInfraNamespace = Group + "/infra-namespace"
	// LabelOwnerUID is the UID of the owning Infra or child, for what no ownerReference can hold.
	LabelOwnerUID = Group + "/owner-uid"
	// LabelHostedCluster on an Infra names the HostedCluster that it was made from.
	LabelHostedCluster = Group + "/hostedcluster"
	// LabelBridge and LabelBridgeNamespace name the DPUHCPBridge that an object belongs to. No ownerReference does: the garbage
	// collector would keep no order, and the hosted cluster goes after its DPUs.
	LabelBridge          = BridgeGroup + "/bridge"
	LabelBridgeNamespace = BridgeGroup + "/bridge-namespace"
	// LabelBridgeSecret is on the Secrets that a bridge makes. HyperShift copies the HostedCluster's labels onto its kubeconfig's
	// Secret (hostedcluster_controller.go), which is not one of them.
	LabelBridgeSecret = BridgeGroup + "/secret"
	// LabelServer is the DHCPServer of a lease.
	LabelServer = Group + "/dhcpserver"
	// LabelPulls is the child that a pod pulls images for.
	LabelPulls = Group + "/pulls"
	// LabelApp is dhcp, dns or proxy: the component that a pod runs.
	LabelApp = "app"
	// LabelInstance is the name of the child object that a workload runs.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelOrdinal is the number of an instance beside the first, on its workload and pods.
	LabelOrdinal = Group + "/ordinal"
	// LabelManagedBy is ManagedBy on everything that the manager applies.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "oooi"
)

// Labels are those that are read.
var Labels = []string{
	LabelInfra, LabelInfraNamespace, LabelOwnerUID, LabelHostedCluster, LabelBridge, LabelBridgeNamespace, LabelBridgeSecret, LabelServer, LabelPulls,
	LabelApp, LabelInstance, LabelOrdinal, LabelManagedBy,
}

// HostedClusterAnnotations are those that say something on a HostedCluster.
var HostedClusterAnnotations = []string{
	AnnotationInfra, AnnotationNetworkAttachment, AnnotationCIDR, AnnotationGateway, AnnotationDNSServers, AnnotationDHCPRange, AnnotationBaseDomain,
	AnnotationAllowedNamespaces, AnnotationPaused,
}

// Annotations.
const (
	// AnnotationInfra on a HostedCluster is InfraAuto: an Infra of its name is made from it.
	AnnotationInfra = Group + "/infra"
	// InfraAuto is the only value of AnnotationInfra.
	InfraAuto = "auto"
	// The annotations on a HostedCluster that say what cannot be derived, or win over what is.
	AnnotationNetworkAttachment = Group + "/network-attachment"
	AnnotationCIDR              = Group + "/cidr"
	AnnotationBaseDomain        = Group + "/base-domain"
	AnnotationGateway           = Group + "/gateway"
	AnnotationDNSServers        = Group + "/dns-servers"
	AnnotationDHCPRange         = Group + "/dhcp-range"
	// AnnotationAllowedNamespaces on a referenced object (or Namespace) lists the namespaces that may refer to it, by comma.
	AnnotationAllowedNamespaces = Group + "/allowed-namespaces"
	// AnnotationPaused on an Infra or a child stops our writes, not the service.
	AnnotationPaused = Group + "/paused"
	// AnnotationGiven on an Infra is what was given to it: its addresses and pool. A backup keeps it, and drops status.
	AnnotationGiven = Group + "/given"
	// AnnotationSource on a derived NetworkAttachmentDefinition names the one it was derived from, as namespace/name.
	AnnotationSource = Group + "/derived-from"
	// AnnotationApplied holds a digest of what was applied last: the same intent is not written twice.
	AnnotationApplied = Group + "/applied"
	// AnnotationTemplate on a workload holds the pod template that was released last.
	AnnotationTemplate = Group + "/template"
	// AnnotationSeal on a workload holds a digest of what decided that template, and one of the template. Taken off, it
	// releases the newest.
	AnnotationSeal = Group + "/released"
	// AnnotationServed on a workload holds a digest of its template, once a pod of that has been Ready.
	AnnotationServed = Group + "/served"
	// AnnotationRules on a workload holds the rules that its template was released with: its pods need them until the next.
	AnnotationRules = Group + "/rules"
	// AnnotationInputs on a derived NetworkAttachmentDefinition holds a digest of what it was derived from.
	AnnotationInputs = Group + "/inputs"
	// AnnotationFormerInputs beside it holds, by comma, what older managers held there for the same.
	AnnotationFormerInputs = Group + "/former-inputs"
	// AnnotationNodes on an Infra's child holds the labels of the nodes that have the VLAN, as NodePools say. Unlike its spec it
	// replaces no pod: the next one is put there.
	AnnotationNodes = Group + "/nodes"
	// AnnotationBootstrap on a proxy's pods holds a digest of Envoy's bootstrap: Envoy reads it only when it starts.
	AnnotationBootstrap = Group + "/bootstrap"
	// AnnotationNetwork on pods holds a digest of the CNI configuration that they are attached by: it takes effect only on a
	// new pod.
	AnnotationNetwork = Group + "/network"
	// AnnotationKeptInPart is on no stored object: in the manager's memory it says of one that is too large which of its parts is, and how
	// many octets that takes.
	AnnotationKeptInPart = Group + "/kept-in-part"
	// AnnotationHostedCluster on a HostedControlPlane names its HostedCluster (written by HyperShift).
	AnnotationHostedCluster = "hypershift.openshift.io/cluster"
	// AnnotationForceDelete on a DPUHCPBridge has its hosted cluster deleted though DPUs are attached to it.
	AnnotationForceDelete = BridgeGroup + "/force-delete"
	// AnnotationClusterType on a bridge's HostedCluster is the type of the DPUCluster that it was made for.
	AnnotationClusterType = BridgeGroup + "/dpu-cluster-type"
	// AnnotationDPUCluster on the Secret that a DPUCluster is to refer to has that DPUCluster's name: the Secret's own name is the bridge's.
	AnnotationDPUCluster = BridgeGroup + "/dpu-cluster"
	// AnnotationNetworks asks Multus for attachments.
	AnnotationNetworks = "k8s.v1.cni.cncf.io/networks"
)

// Finalizer on an Infra, for what lies in other namespaces and for its leases.
const Finalizer = Group + "/cleanup"

// BridgeFinalizer on a DPUHCPBridge, for all that it made.
const BridgeFinalizer = BridgeGroup + "/cleanup"

// Field managers. A daemon writes its own conditions and instance under its own name.
const (
	ManagerFieldOwner = "oooi-manager"
	DHCPFieldOwner    = "oooi-dhcp"
	DNSFieldOwner     = "oooi-dns"
	ProxyFieldOwner   = "oooi-proxy"
	CLIFieldOwner     = "oooi-cli"
)

// InstanceFieldOwner is under which an instance of a daemon writes, so that none takes back what another says of itself.
func InstanceFieldOwner(owner string, instance int) string { return Numbered(owner, instance) }

// What the manager's admission webhook is called.
const (
	// Webhook is the name of its Service and of its ValidatingWebhookConfiguration.
	Webhook = "oooi-webhook"
	// WebhookKeys is the Secret in which the manager keeps its serving certificates, where nobody else makes them.
	WebhookKeys = "oooi-webhook-keys"
)

// Ports of the daemons on the pod network and the interface that Multus makes.
const (
	// HealthPort serves /livez and /readyz.
	HealthPort = 8081
	// MetricsPort serves /metrics.
	MetricsPort = 9402
	// VLANInterface is the name of the pod's interface on the VLAN.
	VLANInterface = "net1"
)

// Components, as LabelApp has them.
const (
	DHCP  = "dhcp"
	DNS   = "dns"
	Proxy = "proxy"
)

// Child is the name of an Infra's DHCPServer, DNSServer or ProxyServer.
func Child(infra, component string) string { return infra + "-" + component }

// DHCPServer is the name of an Infra's DHCPServer.
func DHCPServer(infra string) string { return Child(infra, DHCP) }

// DNSServer is the name of an Infra's DNSServer.
func DNSServer(infra string) string { return Child(infra, DNS) }

// ProxyServer is the name of an Infra's ProxyServer.
func ProxyServer(infra string) string { return Child(infra, Proxy) }

// SharedNetwork is the name of the NetworkAttachmentDefinition that all of an Infra's pods join where it bakes no address in. A
// component cannot be called so.
func SharedNetwork(infra string) string { return infra + "-oooi" }

// Qualified is the name of what a child has in another namespace. No namespace has a dot in its name, so no two children share
// one.
func Qualified(namespace, child string) string { return "oooi." + namespace + "." + child }

// OfChild says whether what an Infra owns is there for one of its children: the child itself, its network, or what it has
// in another namespace.
func OfChild(object, namespace, child string) bool {
	qualified := Qualified(namespace, child)
	return object == child || object == Numbered(child, 1) || object == qualified || strings.HasPrefix(object, qualified+".")
}

// longestService is a DNS label's (RFC 1035 §2.3.4).
const longestService = 63

// Apps is what the Service of *.apps is called in a hosted cluster unless its Infra says: it is the only one there, so that a
// name may be cut. A HostedCluster's name may have dots, begin with a digit or be too long, a Service's not (RFC 1035 §2.3.1).
func Apps(cluster string) string {
	const ending = "-apps"
	name := strings.ReplaceAll(cluster, ".", "-")
	if name < "a" {
		name = "c" + name
	}
	return strings.TrimRight(name[:min(len(name), longestService-len(ending))], "-") + ending
}

// BridgeKey is the name of the Secret with the key that a bridge's etcd is encrypted with.
func BridgeKey(bridge string) string { return bridge + "-etcd-encryption-key" }

// BridgeCopy is the name of the copy of one of a bridge's Secrets. It changes with the content: HyperShift rolls nothing out
// when a Secret changes under its name.
func BridgeCopy(bridge, what string, content []byte) string {
	h := sha256.Sum256(content)
	return fmt.Sprintf("%s-%s-%x", bridge, what, h[:5])
}

// BridgeIgnition is the name of the ConfigMap with a bridge's MachineConfig.
func BridgeIgnition(bridge string) string { return bridge + "-machine-config" }

// BridgeKubeconfig is the name of the Secret in a DPUCluster's namespace with the hosted cluster's kubeconfig.
func BridgeKubeconfig(namespace, bridge string) string {
	return Qualified(namespace, bridge) + ".kubeconfig"
}

// Own is the name of a child's account, permissions, policy and budget. A DHCPServer, a DNSServer and a ProxyServer may have
// one name, and must not share those. An Infra's children end in their component already.
func Own(component, child string) string {
	if strings.HasSuffix(child, "-"+component) {
		return child
	}
	return component + "-" + child
}

// serving is what a child's workload and Service are named after: for a proxy its name as it is (operator-rules.md#names:
// deploymentName is <name>-deployment, serviceName <name>-svc).
func serving(component, child string) string {
	if component == Proxy {
		return child
	}
	return Own(component, child)
}

// longestStatefulSet leaves room for a hyphen and ten characters of hash: a StatefulSet's pods carry all of it in one label
// of 63 (stateful_set_utils.go, newStatefulSetPod).
const longestStatefulSet = 52

// Workload is the name of the Deployment or StatefulSet of a child, with the seed's ending where it fits.
func Workload(component, child string) string {
	name := serving(component, child)
	if whole := name + "-deployment"; len(whole) <= longestStatefulSet {
		return whole
	}
	return name
}

// Numbered is what an instance has of its own beside the first, which has the name as it is.
func Numbered(name string, instance int) string {
	if instance == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, instance)
}

// InstanceWorkload is the name of the StatefulSet of one instance of a child.
func InstanceWorkload(component, child string, instance int) string {
	name := Workload(component, child)
	if whole := Numbered(name, instance); len(whole) <= longestStatefulSet {
		return whole
	}
	return Numbered(serving(component, child), instance)
}

// Service is the name of a child's Service.
func Service(component, child string) string { return serving(component, child) + "-svc" }

// Puller is the name of a pod that pulls the images of a child's next template.
func Puller(component, child, digest string) string {
	return Own(component, child) + "-pull-" + digest
}

// EnvoyBootstrap is the name of the ConfigMap with a proxy's bootstrap template.
func EnvoyBootstrap(proxy string) string { return "envoy-bootstrap-" + proxy }

// Lease is the name of the DHCPLease for one address of one DHCPServer.
func Lease(server string, ip netip.Addr) string { return server + "-" + ip.Unmap().String() }

// MAC is the stable hardware address of a pod's VLAN interface: locally administered unicast, derived from the Infra's (or
// a lone child's) namespace and name and the interface's first address, so that a replaced pod and a restored backup keep it.
func MAC(namespace, name string, ip netip.Addr) string {
	h := sha256.Sum256([]byte(namespace + "/" + name + "/" + ip.String()))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4])
}
