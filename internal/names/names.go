// Package names has the names of the product's objects, labels and annotations, and its own ports. Ports of hosted control planes are in
// the endpoint table only.
package names

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Group is the prefix of every label, annotation and finalizer.
const Group = "hostedcluster.densityops.com"

// BridgeGroup is the prefix of the labels, annotations and finalizers of DPUHCPBridges.
const BridgeGroup = "provisioning.dpu.hcp.io"

// Labels of our objects. Selectors always include the instance.
const (
	// LabelInfra is the name of the Infra that an object belongs to.
	LabelInfra = Group + "/infra"
	// LabelInfraNamespace is that Infra's namespace; on objects in other namespaces and on leases.
	LabelInfraNamespace = Group + "/infra-namespace"
	// LabelOwnerUID is the UID of the owning Infra or child, for objects that cannot have an ownerReference to it.
	LabelOwnerUID = Group + "/owner-uid"
	// LabelHostedCluster on an Infra names the HostedCluster that it was created from.
	LabelHostedCluster = Group + "/hostedcluster"
	// LabelBridge and LabelBridgeNamespace name the DPUHCPBridge that an object belongs to. No ownerReference does, because the garbage
	// collector deletes in no order, and the hosted cluster must be deleted after its DPUs.
	LabelBridge          = BridgeGroup + "/bridge"
	LabelBridgeNamespace = BridgeGroup + "/bridge-namespace"
	// LabelBridgeSecret is on the Secrets that a bridge creates, but not on the kubeconfig's Secret, onto which HyperShift copies the
	// HostedCluster's other labels (hostedcluster_controller.go).
	LabelBridgeSecret = BridgeGroup + "/secret"
	// LabelBridgeTemplate is on the templates that a bridge makes, in the namespace of DPFOperatorConfig, which may be the bridge's.
	LabelBridgeTemplate = BridgeGroup + "/template"
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
	// LabelLost is on a proxy's pod that no longer answers on the VLAN: its successor goes to another node.
	LabelLost = Group + "/lost"
	// LabelManagedBy is ManagedBy on everything that the manager applies.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "oooi"
)

// Labels are those that we read.
var Labels = []string{
	LabelInfra, LabelInfraNamespace, LabelOwnerUID, LabelHostedCluster, LabelBridge, LabelBridgeNamespace, LabelBridgeSecret, LabelBridgeTemplate, LabelServer, LabelPulls,
	LabelApp, LabelInstance, LabelOrdinal, LabelLost, LabelManagedBy,
}

// HostedClusterAnnotations are those that configure us on a HostedCluster.
var HostedClusterAnnotations = []string{
	AnnotationInfra, AnnotationNetworkAttachment, AnnotationCIDR, AnnotationGateway, AnnotationDNSServers, AnnotationDHCPRange, AnnotationBaseDomain,
	AnnotationAllowedNamespaces, AnnotationPaused,
}

// Annotations.
const (
	// AnnotationInfra on a HostedCluster is InfraAuto: an Infra with its name is created from it.
	AnnotationInfra = Group + "/infra"
	// InfraAuto is the only value of AnnotationInfra.
	InfraAuto = "auto"
	// These annotations on a HostedCluster say what cannot be derived, or override what is.
	AnnotationNetworkAttachment = Group + "/network-attachment"
	AnnotationCIDR              = Group + "/cidr"
	AnnotationBaseDomain        = Group + "/base-domain"
	AnnotationGateway           = Group + "/gateway"
	AnnotationDNSServers        = Group + "/dns-servers"
	AnnotationDHCPRange         = Group + "/dhcp-range"
	// AnnotationAllowedNamespaces on a referenced object (or Namespace) lists the namespaces that may refer to it, comma-separated.
	AnnotationAllowedNamespaces = Group + "/allowed-namespaces"
	// AnnotationPaused on an Infra or a child stops our writes, but not the service.
	AnnotationPaused = Group + "/paused"
	// AnnotationGiven on an Infra has its assigned addresses and pool. A backup keeps it, and drops status.
	AnnotationGiven = Group + "/given"
	// AnnotationSource on a derived NetworkAttachmentDefinition names the one it was derived from, as namespace/name.
	AnnotationSource = Group + "/derived-from"
	// AnnotationApplied holds a digest of what was applied last, so that the same intent is not written twice.
	AnnotationApplied = Group + "/applied"
	// AnnotationTemplate on a workload holds the pod template of its last update.
	AnnotationTemplate = Group + "/template"
	// AnnotationSeal on a workload holds a digest of what that template was planned from, and one of the template. To remove it has the
	// newest template rolled out.
	AnnotationSeal = Group + "/released"
	// AnnotationServed on a workload holds a digest of its template, once a pod of that has been Ready; before, of the last one that was.
	AnnotationServed = Group + "/served"
	// AnnotationRules on a workload holds the rules of its current template: its pods need them until the next one.
	AnnotationRules = Group + "/rules"
	// AnnotationInputs on a derived NetworkAttachmentDefinition holds a digest of what it was derived from.
	AnnotationInputs = Group + "/inputs"
	// AnnotationFormerInputs next to it holds, comma-separated, the digests that older managers wrote for the same inputs.
	AnnotationFormerInputs = Group + "/former-inputs"
	// AnnotationNodes on an Infra's child holds the labels of the nodes that have the VLAN, as NodePools say. Unlike a change of its spec,
	// a change of it replaces no pod: the next pod is scheduled there.
	AnnotationNodes = Group + "/nodes"
	// AnnotationBootstrap on a proxy's pods holds a digest of Envoy's bootstrap, which Envoy reads only when it starts.
	AnnotationBootstrap = Group + "/bootstrap"
	// AnnotationNetwork on pods holds a digest of their CNI configuration, a change of which takes effect only on a new pod.
	AnnotationNetwork = Group + "/network"
	// AnnotationKeptInPart is on no stored object: in the manager's memory, it names the part that makes an object too large, and its size
	// in octets.
	AnnotationKeptInPart = Group + "/kept-in-part"
	// AnnotationHostedCluster on a HostedControlPlane names its HostedCluster (written by HyperShift).
	AnnotationHostedCluster = "hypershift.openshift.io/cluster"
	// AnnotationConfigVersion on a NodePool is the hash of its current configuration and release (written by HyperShift).
	AnnotationConfigVersion = "hypershift.openshift.io/nodePoolCurrentConfigVersion"
	// AnnotationForceDelete on a DPUHCPBridge has its hosted cluster deleted even if DPUs are attached to it.
	AnnotationForceDelete = BridgeGroup + "/force-delete"
	// AnnotationAdoptBy on a HostedCluster that nothing owns any more names the bridge that takes it over, as NAMESPACE/NAME.
	AnnotationAdoptBy = BridgeGroup + "/adopt-by"
	// AnnotationClusterType on a bridge's HostedCluster is the type of the DPUCluster that it was created for.
	AnnotationClusterType = BridgeGroup + "/dpu-cluster-type"
	// AnnotationDPUCluster on the Secret that a DPUCluster refers to is the DPUCluster's name; the Secret's own name has the bridge's.
	AnnotationDPUCluster = BridgeGroup + "/dpu-cluster"
	// AnnotationTemplateRelease on a template is the release image of the ignition that it was made from.
	AnnotationTemplateRelease = BridgeGroup + "/release"
	// AnnotationTemplateInputs on it is a digest of all that it was made from, and AnnotationTemplateContent one of its text.
	AnnotationTemplateInputs  = BridgeGroup + "/inputs"
	AnnotationTemplateContent = BridgeGroup + "/content"
	// AnnotationNetworks lists a pod's networks for Multus.
	AnnotationNetworks = "k8s.v1.cni.cncf.io/networks"
)

// Finalizer is on an Infra, for its objects in other namespaces and its leases.
const Finalizer = Group + "/cleanup"

// BridgeFinalizer is on a DPUHCPBridge, for all that it created.
const BridgeFinalizer = BridgeGroup + "/cleanup"

// Field managers. A daemon writes its own conditions and instance under its own name.
const (
	ManagerFieldOwner = "oooi-manager"
	DHCPFieldOwner    = "oooi-dhcp"
	DNSFieldOwner     = "oooi-dns"
	ProxyFieldOwner   = "oooi-proxy"
	CLIFieldOwner     = "oooi-cli"
	// StagesFieldOwner is one for all daemons and the operator: what each saw first stays, and a lease has one entry of managed fields for it.
	StagesFieldOwner = "oooi-stages"
)

// InstanceFieldOwner is under which an instance of a daemon writes, so that none takes back what another says of itself.
func InstanceFieldOwner(owner string, instance int) string { return Numbered(owner, instance) }

// Names of the manager's admission webhook.
const (
	// Webhook is the name of its Service and of its ValidatingWebhookConfiguration.
	Webhook = "oooi-webhook"
	// WebhookKeys is the Secret in which the manager keeps its serving certificates, unless somebody else issues them.
	WebhookKeys = "oooi-webhook-keys"
)

// Ports of the daemons on the pod network, and the interface that Multus creates.
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

// SharedNetwork is the name of the NetworkAttachmentDefinition that all of an Infra's pods join if it has no address in it. No component
// may have this name.
func SharedNetwork(infra string) string { return infra + "-oooi" }

// Qualified is the name of a child's object in another namespace. It is unique, because no namespace has a dot in its name.
func Qualified(namespace, child string) string { return "oooi." + namespace + "." + child }

// OfChild says whether an Infra's object serves one of its children: the child itself, its network, or its object in another namespace.
func OfChild(object, namespace, child string) bool {
	qualified := Qualified(namespace, child)
	return object == child || object == Numbered(child, 1) || object == qualified || strings.HasPrefix(object, qualified+".")
}

// longestService is the length of a DNS label (RFC 1035 §2.3.4).
const longestService = 63

// Apps is the name of the Service of *.apps in a hosted cluster unless its Infra names it. There is only one, so the name may be cut. A
// HostedCluster's name may have dots, begin with a digit or be too long; a Service's may not (RFC 1035 §2.3.1).
func Apps(cluster string) string {
	const ending = "-apps"
	name := strings.ReplaceAll(cluster, ".", "-")
	if name < "a" {
		name = "c" + name
	}
	return strings.TrimRight(name[:min(len(name), longestService-len(ending))], "-") + ending
}

// BridgeKey is the name of the Secret with the encryption key of a bridge's etcd.
func BridgeKey(bridge string) string { return bridge + "-etcd-encryption-key" }

// BridgeCopy is the name of the copy of one of a bridge's Secrets. It changes with the content, because HyperShift rolls nothing out when a
// Secret changes under the same name.
func BridgeCopy(bridge, what string, content []byte) string {
	h := sha256.Sum256(content)
	return fmt.Sprintf("%s-%s-%x", bridge, what, h[:5])
}

// BridgeIgnition is the name of the ConfigMap with a bridge's MachineConfig.
func BridgeIgnition(bridge string) string { return bridge + "-machine-config" }

// BridgeTemplate is the name of the template for the DPUs of a bridge, a BFB and a flavor, which are named as namespace/name. It has at most
// 57 characters.
func BridgeTemplate(namespace, bridge, bfb, flavor string) string {
	h := sha256.Sum256([]byte(namespace + " " + bfb + " " + flavor))
	return fmt.Sprintf("bfcfg-%s-%x", bridge, h[:5])
}

// BridgeKubeconfig is the name of the Secret in a DPUCluster's namespace with the hosted cluster's kubeconfig.
func BridgeKubeconfig(namespace, bridge string) string {
	return Qualified(namespace, bridge) + ".kubeconfig"
}

// Own is the name of a child's ServiceAccount, permissions, policy and budget. A DHCPServer, a DNSServer and a ProxyServer may have the same
// name, and must not share these. The names of an Infra's children end in their component already.
func Own(component, child string) string {
	if strings.HasSuffix(child, "-"+component) {
		return child
	}
	return component + "-" + child
}

// serving is the prefix of the names of a child's workload and Service: for a proxy its own name (operator-rules.md#names: deploymentName is
// <name>-deployment, serviceName <name>-svc).
func serving(component, child string) string {
	if component == Proxy {
		return child
	}
	return Own(component, child)
}

// longestStatefulSet leaves room for a hyphen and ten characters of hash: a label of a StatefulSet's pods has all of it in 63 characters
// (stateful_set_utils.go, newStatefulSetPod).
const longestStatefulSet = 52

// Workload is the name of the Deployment or StatefulSet of a child, with the seed's suffix if it fits.
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

// InstanceWorkload is the name of the Deployment or StatefulSet of one instance of a child.
func InstanceWorkload(component, child string, instance int) string {
	name := Workload(component, child)
	if whole := Numbered(name, instance); len(whole) <= longestStatefulSet {
		return whole
	}
	return Numbered(serving(component, child), instance)
}

// OfInstance says whether labels are those of an instance's pod. The first instance's has no number.
func OfInstance(labels map[string]string, instance int) bool {
	number, numbered := labels[LabelOrdinal]
	return numbered == (instance > 0) && (!numbered || number == strconv.Itoa(instance))
}

// Service is the name of a child's Service.
func Service(component, child string) string { return serving(component, child) + "-svc" }

// Puller is the name of a pod that pulls the images of a child's next template.
func Puller(component, child, digest string) string {
	return Own(component, child) + "-pull-" + digest
}

// EnvoyBootstrap is the name of the ConfigMap with the bootstrap template of one instance of a proxy. No proxy's name begins with a digit.
func EnvoyBootstrap(proxy string, instance int) string {
	if instance == 0 {
		return "envoy-bootstrap-" + proxy
	}
	return fmt.Sprintf("envoy-bootstrap-%d-%s", instance, proxy)
}

// Lease is the name of the DHCPLease for one address of one DHCPServer.
func Lease(server string, ip netip.Addr) string { return server + "-" + ip.Unmap().String() }

// MAC is the stable MAC address of a pod's VLAN interface: locally administered unicast, derived from the Infra's (or a lone child's)
// namespace and name and the interface's first address, so that a replaced pod and a restored backup keep it.
func MAC(namespace, name string, ip netip.Addr) string {
	h := sha256.Sum256([]byte(namespace + "/" + name + "/" + ip.String()))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4])
}
