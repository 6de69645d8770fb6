package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// Names inside our pods.
const (
	stateVolume   = "state"
	statePath     = "/state"
	healthPort    = "health"
	metricsPort   = "metrics"
	accountVolume = "token"
	accountPath   = "/var/run/secrets/kubernetes.io/serviceaccount" // where client-go looks (rest.InClusterConfig)
	apiProxy      = "api-proxy"
	apiVolume     = "api"
	apiPath       = "/api"
	apiSocket     = apiPath + "/api.sock"
)

// tokenSeconds is how long a token is asked for where the API server mounts one by itself: only with exactly this does one outlast an API
// server that was away for an hour (kubernetes, pkg/serviceaccount/claims.go, WarnOnlyBoundTokenExpirationSeconds).
const tokenSeconds = 60*60 + 7

// tunedVariable tells a daemon whether its attachment switches forwarding off.
const tunedVariable = "OOOI_VLAN_TUNED"

// daemonGrace is how many seconds a daemon gets to end.
const daemonGrace = 5

// pod is all that users and the cluster decide of a child's pod. Every template is made by its methods, from it and the
// manager's own settings, so that a digest of it tells whether anybody but a newer manager wants another pod (release.go).
// Newer managers compare that digest: what is added here is left out of the JSON while it is empty.
type pod struct {
	App        string              `json:"app"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Infra      map[string]string   `json:"infra,omitempty"` // the labels that name it
	Attachment v1alpha1.Attachment `json:"attachment"`
	Network    string              `json:"network"`   // what was decided of the network that is attached to
	Addresses  []netip.Prefix      `json:"addresses"` // of the VLAN interface, the server's own first
	Placement  v1alpha1.Placement  `json:"placement"`
	Image      string              `json:"image,omitempty"` // of the daemon, as it was written
	EnvoyImage string              `json:"envoyImage,omitempty"`

	former []string // what older managers took for Network, of the same decision
	cni    string   // the attached network's configuration; a derived one is the manager's work
	// Where the VLAN is, as others say: NodePools by labels, the attached network by a resource. Both are the next pod's, and no
	// reason to replace one.
	nodes  map[string]string
	device string
}

func podOf(server metav1.Object, app string, network *nad.NetworkAttachmentDefinition, a v1alpha1.Attachment, addresses []netip.Prefix) pod {
	p := pod{App: app, Namespace: server.GetNamespace(), Name: server.GetName(), Infra: map[string]string{}, Attachment: a, Addresses: addresses, cni: network.Spec.Config}
	p.Network, p.former = decidedOf(network)
	p.nodes, _ = labels.ConvertSelectorToLabelsMap(server.GetAnnotations()[names.AnnotationNodes]) // what no node can have, places nothing
	p.device = network.Resource()
	for _, l := range []string{names.LabelInfra, names.LabelInfraNamespace} {
		if value := server.GetLabels()[l]; value != "" {
			p.Infra[l] = value
		}
	}
	return p
}

// decidedOf says what was decided of a network, and what older managers took for the same: of one that we derived, what it was
// derived from; of one that is attached to as it is, what its configuration says, however it is written.
func decidedOf(network *nad.NetworkAttachmentDefinition) (decided string, former []string) {
	if inputs := network.Annotations[names.AnnotationInputs]; inputs != "" {
		return inputs, strings.Split(network.Annotations[names.AnnotationFormerInputs], ",")
	}
	config, err := nad.Parse(network.Spec.Config)
	if err != nil {
		return network.Spec.Config, nil
	}
	return digest(config.Attachment()), []string{network.Spec.Config}
}

// own is the name of what the child has beside its workload.
func (p pod) own() string { return names.Own(p.App, p.Name) }

// selector picks this child's pods and nobody else's.
func (p pod) selector() map[string]string {
	return map[string]string{names.LabelApp: p.App, names.LabelInstance: p.Name}
}

// template is Pod Security restricted, without a uid (OpenShift gives each namespace its own range).
func (p pod) template(s Settings, spec *accore.PodSpecApplyConfiguration) *accore.PodTemplateSpecApplyConfiguration {
	// Off here and not at the ServiceAccount: pods of older templates have their token by way of that.
	spec.WithServiceAccountName(p.own()).WithAutomountServiceAccountToken(false).WithSecurityContext(podSecurity()).
		WithVolumes(emptyDir(stateVolume), token()).WithAffinity(p.apart())
	p.place(spec)
	for _, name := range s.ImagePullSecrets {
		spec.WithImagePullSecrets(accore.LocalObjectReference().WithName(name))
	}
	labels := p.selector()
	labels[names.LabelManagedBy] = names.ManagedBy
	maps.Copy(labels, p.Infra)
	return accore.PodTemplateSpec().WithLabels(labels).WithSpec(spec).
		WithAnnotations(map[string]string{names.AnnotationNetworks: p.networks(), names.AnnotationNetwork: p.attached()})
}

// attached is a digest of the configuration.
func (p pod) attached() string {
	config, err := nad.Parse(p.cni)
	if err != nil {
		return digest(p.cni)
	}
	return digest(config.Attachment())
}

// tuned says whether the attachment switches forwarding off; the daemon then holds back readiness while it is on.
func (p pod) tuned() bool { return p.network().PreventsForwarding() }

// network is the attachment's configuration; the zero one while it cannot be read.
func (p pod) network() nad.Config {
	config, err := nad.Parse(p.cni)
	if err != nil {
		return nad.Config{}
	}
	return config
}

func podSecurity() *accore.PodSecurityContextApplyConfiguration {
	// The daemons bind ports below 1024 without any capability.
	return accore.PodSecurityContext().WithRunAsNonRoot(true).
		WithSeccompProfile(accore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithSysctls(accore.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
}

func (p pod) place(spec *accore.PodSpecApplyConfiguration) {
	if len(p.Placement.NodeSelector) > 0 {
		spec.WithNodeSelector(p.Placement.NodeSelector)
	} else {
		spec.WithNodeSelector(p.nodes)
	}
	if p.Placement.PriorityClassName != "" {
		spec.WithPriorityClassName(string(p.Placement.PriorityClassName))
	}
	for _, t := range p.Placement.Tolerations {
		spec.WithTolerations(applied[accore.TolerationApplyConfiguration](t))
	}
}

// apart keeps the instances of one component on different nodes where there are several.
func (p pod) apart() *accore.AffinityApplyConfiguration {
	term := accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(acmeta.LabelSelector().WithMatchLabels(p.selector()))
	return accore.Affinity().WithPodAntiAffinity(accore.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(accore.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(term)))
}

// networks is Multus' annotation. Addresses are asked for where the attachment does not bake them in: OVN-Kubernetes and
// the capability `ips` take them from here.
func (p pod) networks() string {
	type attachment struct {
		Name      string   `json:"name"`
		Namespace string   `json:"namespace"`
		Interface string   `json:"interface"`
		MAC       string   `json:"mac"`
		IPs       []string `json:"ips,omitempty"`
	}
	a := attachment{
		Name: string(p.Attachment.NetworkAttachmentDefinition), Namespace: orElse(string(p.Attachment.NetworkAttachmentNamespace), p.Namespace),
		Interface: names.VLANInterface, MAC: p.mac(),
	}
	for _, ip := range p.asked() {
		a.IPs = append(a.IPs, ip.String())
	}
	text, err := json.Marshal([]attachment{a})
	if err != nil {
		panic(err) // strings encode
	}
	return string(text)
}

// asked are the addresses that the attachment has to be told.
func (p pod) asked() []netip.Prefix {
	if p.network().BakesAddresses() {
		return nil
	}
	return p.Addresses
}

func (p pod) mac() string {
	if written := string(p.Attachment.MACAddress); written != "" {
		return written
	}
	return names.MAC(p.Namespace, p.Name, p.Addresses[0].Addr())
}

// daemon is the container of one of our daemons.
func (p pod) daemon(s Settings, args ...string) *accore.ContainerApplyConfiguration {
	return accore.Container().WithName(p.App).WithImage(cmp.Or(p.Image, s.Image)).WithArgs(args...).
		WithEnv(fromField("POD_IP", "status.podIP"), fromField("POD_NAMESPACE", "metadata.namespace"), accore.EnvVar().WithName(tunedVariable).WithValue(fmt.Sprint(p.tuned()))).
		WithPorts(port(healthPort, names.HealthPort), port(metricsPort, names.MetricsPort)).
		WithLivenessProbe(probe("/livez").WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1).WithFailureThreshold(2)).
		WithSecurityContext(restricted()).
		WithVolumeMounts(accore.VolumeMount().WithName(stateVolume).WithMountPath(statePath))
}

// guarded are a daemon that parses what guests send, and the container that asks the API server for it: the token is there, and only there.
func guarded(daemon *accore.ContainerApplyConfiguration) *accore.PodSpecApplyConfiguration {
	socket := accore.VolumeMount().WithName(apiVolume).WithMountPath(apiPath)
	asks := accore.Container().WithName(apiProxy).WithImage(*daemon.Image).WithArgs(apiProxy, "--socket="+apiSocket).
		WithEnv(accore.EnvVar().WithName("GOMEMLIMIT").WithValue("48MiB")).
		WithSecurityContext(restricted()).WithResources(besides(daemon.Resources)).WithVolumeMounts(socket, account())
	return accore.PodSpec().WithTerminationGracePeriodSeconds(daemonGrace).WithVolumes(emptyDir(apiVolume)).
		WithContainers(daemon.WithArgs("--api-socket="+apiSocket).WithVolumeMounts(socket.WithReadOnly(true)), asks)
}

// besides is little. It leaves a pod in the QoS class Guaranteed whose daemon is given all that it may take.
func besides(daemon *accore.ResourceRequirementsApplyConfiguration) *accore.ResourceRequirementsApplyConfiguration {
	most := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	least := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	if guaranteed(daemon) {
		most[corev1.ResourceCPU] = resource.MustParse("100m")
		least = most
	}
	return accore.ResourceRequirements().WithRequests(least).WithLimits(most)
}

// guaranteed as kubernetes has it (pkg/apis/core/v1/helper/qos); what is not requested is what is the limit.
func guaranteed(r *accore.ResourceRequirementsApplyConfiguration) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := ptr.Deref(r.Limits, nil)[name]
		request, requested := ptr.Deref(r.Requests, nil)[name]
		if !limited || requested && request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}

// account is the token, where a container may have it.
func account() *accore.VolumeMountApplyConfiguration {
	return accore.VolumeMount().WithName(accountVolume).WithMountPath(accountPath).WithReadOnly(true)
}

// daemonArgs are those that every daemon understands.
func (p pod) daemonArgs(nameFlag, levelFlag string) []string {
	return []string{
		p.App, "--namespace=$(POD_NAMESPACE)", "--" + nameFlag + "=" + p.Name, "--state-dir=" + statePath,
		"--pod-ip=$(POD_IP)", "--" + levelFlag + "=info",
	}
}

func restricted() *accore.SecurityContextApplyConfiguration {
	return accore.SecurityContext().WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
		WithCapabilities(accore.Capabilities().WithDrop("ALL"))
}

func fromField(name, path string) *accore.EnvVarApplyConfiguration {
	return accore.EnvVar().WithName(name).WithValueFrom(accore.EnvVarSource().WithFieldRef(accore.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
}

func port(name string, number int32) *accore.ContainerPortApplyConfiguration {
	return accore.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

func probe(path string) *accore.ProbeApplyConfiguration {
	return accore.Probe().WithTimeoutSeconds(1).WithHTTPGet(accore.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(healthPort)))
}

// token is what the API server mounts into every container of a pod (kubernetes, plugin/pkg/admission/serviceaccount/admission.go); ours
// is for those containers alone that parse nothing but what the API server and Envoy say.
func token() *accore.VolumeApplyConfiguration {
	return accore.Volume().WithName(accountVolume).WithProjected(accore.ProjectedVolumeSource().WithSources(
		accore.VolumeProjection().WithServiceAccountToken(accore.ServiceAccountTokenProjection().WithPath("token").WithExpirationSeconds(tokenSeconds)),
		accore.VolumeProjection().WithConfigMap(accore.ConfigMapProjection().WithName("kube-root-ca.crt").WithItems(accore.KeyToPath().WithKey("ca.crt").WithPath("ca.crt"))),
		accore.VolumeProjection().WithDownwardAPI(accore.DownwardAPIProjection().WithItems(
			accore.DownwardAPIVolumeFile().WithPath("namespace").WithFieldRef(accore.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace"))))))
}

func emptyDir(name string) *accore.VolumeApplyConfiguration {
	return accore.Volume().WithName(name).WithEmptyDir(accore.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("64Mi")))
}

// resources are the user's where given, else requests for cpu and memory and a limit of memory and cpu; and one of what nodes
// with the VLAN have.
func (p pod) resources(cpu, memory, memoryLimit string) *accore.ResourceRequirementsApplyConfiguration {
	all := resources(cpu, memory, memoryLimit)
	if written := p.Placement.Resources; written != nil {
		all = applied[accore.ResourceRequirementsApplyConfiguration](written)
	}
	device := corev1.ResourceName(p.device)
	if _, written := ptr.Deref(all.Limits, nil)[device]; written || device == "" {
		return all
	}
	for _, list := range []**corev1.ResourceList{&all.Requests, &all.Limits} { // of such a resource they are equal
		with := corev1.ResourceList{}
		maps.Copy(with, ptr.Deref(*list, nil))
		with[device] = resource.MustParse("1")
		*list = &with
	}
	return all
}

func resources(cpu, memory, memoryLimit string) *accore.ResourceRequirementsApplyConfiguration {
	return accore.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}).
		WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse(memoryLimit)})
}

// within gives an address the length of its network; alone it is a network of its own.
func within(address, network string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	if n, err := netip.ParsePrefix(network); err == nil && n.Contains(a) {
		return netip.PrefixFrom(a, n.Bits())
	}
	return netip.PrefixFrom(a, a.BitLen())
}
