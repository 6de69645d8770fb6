package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// Names inside our pods.
const (
	stateVolume = "state"
	statePath   = "/state"
	healthPort  = "health"
	metricsPort = "metrics"
)

// pod is the template of a child's pod: Pod Security restricted, no uid (OpenShift gives each namespace its own range).
func (w workload) pod(spec *accore.PodSpecApplyConfiguration) *accore.PodTemplateSpecApplyConfiguration {
	spec.WithServiceAccountName(w.own()).WithTerminationGracePeriodSeconds(w.grace).
		WithSecurityContext(podSecurity()).
		WithVolumes(emptyDir(stateVolume)).
		WithAffinity(w.apart())
	w.place(spec)
	labels := w.selector()
	labels[names.LabelManagedBy] = names.ManagedBy
	maps.Copy(labels, w.infraLabels())
	return accore.PodTemplateSpec().WithLabels(labels).WithSpec(spec).
		WithAnnotations(map[string]string{names.AnnotationNetworks: w.networks(), names.AnnotationNetwork: digest(w.nad.Spec.Config)})
}

func podSecurity() *accore.PodSecurityContextApplyConfiguration {
	// The daemons bind ports below 1024 without any capability.
	return accore.PodSecurityContext().WithRunAsNonRoot(true).
		WithSeccompProfile(accore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithSysctls(accore.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
}

func (w workload) place(spec *accore.PodSpecApplyConfiguration) {
	if len(w.placement.NodeSelector) > 0 {
		spec.WithNodeSelector(w.placement.NodeSelector)
	}
	if w.placement.PriorityClassName != "" {
		spec.WithPriorityClassName(string(w.placement.PriorityClassName))
	}
	for _, t := range w.placement.Tolerations {
		spec.WithTolerations(applied[accore.TolerationApplyConfiguration](t))
	}
}

// apart keeps the instances of one component on different nodes where there are several.
func (w workload) apart() *accore.AffinityApplyConfiguration {
	term := accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(acmeta.LabelSelector().WithMatchLabels(w.selector()))
	return accore.Affinity().WithPodAntiAffinity(accore.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(accore.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(term)))
}

// networks is Multus' annotation. Addresses are asked for where the attachment does not bake them in: OVN-Kubernetes and
// the capability `ips` take them from here.
func (w workload) networks() string {
	type attachment struct {
		Name      string   `json:"name"`
		Namespace string   `json:"namespace"`
		Interface string   `json:"interface"`
		MAC       string   `json:"mac"`
		IPs       []string `json:"ips,omitempty"`
	}
	a := attachment{
		Name: string(w.attachment.NetworkAttachmentDefinition), Namespace: orElse(string(w.attachment.NetworkAttachmentNamespace), w.namespace()),
		Interface: names.VLANInterface, MAC: w.mac(),
	}
	for _, p := range w.asked() {
		a.IPs = append(a.IPs, p.String())
	}
	text, err := json.Marshal([]attachment{a})
	if err != nil {
		panic(err) // strings encode
	}
	return string(text)
}

// asked are the addresses that the attachment has to be told.
func (w workload) asked() []netip.Prefix {
	if w.network().BakesAddresses() {
		return nil
	}
	return w.addresses
}

func (w workload) mac() string {
	if written := string(w.attachment.MACAddress); written != "" {
		return written
	}
	return names.MAC(w.namespace(), w.name(), w.addresses[0].Addr())
}

// daemon is the container of one of our daemons.
func (w workload) daemon(name, image string, args ...string) *accore.ContainerApplyConfiguration {
	return accore.Container().WithName(name).WithImage(image).WithArgs(args...).
		WithEnv(fromField("POD_IP", "status.podIP"), fromField("POD_NAMESPACE", "metadata.namespace"), accore.EnvVar().WithName("OOOI_VLAN_TUNED").WithValue(fmt.Sprint(w.tuned()))).
		WithPorts(port(healthPort, names.HealthPort), port(metricsPort, names.MetricsPort)).
		WithLivenessProbe(probe("/livez").WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1).WithFailureThreshold(2)).
		WithSecurityContext(restricted()).
		WithVolumeMounts(accore.VolumeMount().WithName(stateVolume).WithMountPath(statePath))
}

// daemonArgs are those that every daemon understands.
func (w workload) daemonArgs(nameFlag, levelFlag string) []string {
	return []string{
		w.app, "--namespace=$(POD_NAMESPACE)", "--" + nameFlag + "=" + w.name(), "--state-dir=" + statePath,
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

func emptyDir(name string) *accore.VolumeApplyConfiguration {
	return accore.Volume().WithName(name).WithEmptyDir(accore.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("64Mi")))
}

// resources are the user's where given, else requests for cpu and memory and a limit of memory and cpu.
func (w workload) resources(cpu, memory, memoryLimit string) *accore.ResourceRequirementsApplyConfiguration {
	if written := w.placement.Resources; written != nil {
		return applied[accore.ResourceRequirementsApplyConfiguration](written)
	}
	return resources(cpu, memory, memoryLimit)
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

// keepImages lets a new manager restart nothing: while the template is otherwise what was rolled out, the operator's own
// images stay those that run. A change of anything else, or of an image that was written, brings the new ones.
func (w workload) keepImages(template *accore.PodTemplateSpecApplyConfiguration, ours ...string) (rolledOut string) {
	var containers []*accore.ContainerApplyConfiguration
	for _, list := range [][]accore.ContainerApplyConfiguration{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range list {
			if slices.Contains(ours, *list[i].Name) {
				containers = append(containers, &list[i])
			}
		}
	}
	images := make([]string, len(containers))
	for i, c := range containers {
		images[i], c.Image = *c.Image, nil
	}
	rolledOut = digest(template)
	keep := w.running != nil && w.running.Annotations[names.AnnotationRolledOut] == rolledOut
	for i, c := range containers {
		c.Image = &images[i]
		if running := w.running.image(*c.Name); keep && running != "" {
			c.Image = &running
		}
	}
	return rolledOut
}

// image that a container runs; empty when it does not.
func (r *Running) image(container string) string {
	if r == nil {
		return ""
	}
	for _, c := range slices.Concat(r.Template.Spec.InitContainers, r.Template.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}
