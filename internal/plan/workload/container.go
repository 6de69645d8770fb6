package workload

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// daemonGrace is how many seconds a daemon has to end.
const daemonGrace = 5

// daemon is the container of one of our daemons.
func (p pod) daemon(s input.Settings, args ...string) *accore.ContainerApplyConfiguration {
	return accore.Container().WithName(p.App).WithImage(cmp.Or(p.Image, s.Image)).WithArgs(args...).
		WithEnv(fromField("POD_IP", "status.podIP"), fromField("POD_NAMESPACE", "metadata.namespace"), accore.EnvVar().WithName(tunedVariable).WithValue(fmt.Sprint(p.tuned()))).
		WithPorts(port(healthPort, names.HealthPort), port(metricsPort, names.MetricsPort)).
		WithLivenessProbe(probe("/livez").WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1).WithFailureThreshold(2)).
		WithSecurityContext(restricted()).
		WithVolumeMounts(accore.VolumeMount().WithName(stateVolume).WithMountPath(statePath))
}

// guarded is the pod of a daemon that parses what guests send: only a second container, which calls the API server, has the token.
func guarded(daemon *accore.ContainerApplyConfiguration) *accore.PodSpecApplyConfiguration {
	socket := accore.VolumeMount().WithName(apiVolume).WithMountPath(apiPath)
	asks := accore.Container().WithName(apiProxy).WithImage(*daemon.Image).WithArgs(apiProxy, "--socket="+apiSocket).
		WithEnv(accore.EnvVar().WithName("GOMEMLIMIT").WithValue("48MiB")).
		WithSecurityContext(restricted()).WithResources(besides(daemon.Resources)).WithVolumeMounts(socket, account())
	return accore.PodSpec().WithTerminationGracePeriodSeconds(daemonGrace).WithVolumes(emptyDir(apiVolume)).
		WithContainers(daemon.WithArgs("--api-socket="+apiSocket).WithVolumeMounts(socket.WithReadOnly(true)), asks)
}

// besides are the second container's resources. If the daemon alone has QoS class Guaranteed, so has the pod with them.
func besides(daemon *accore.ResourceRequirementsApplyConfiguration) *accore.ResourceRequirementsApplyConfiguration {
	most := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	least := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	if guaranteed(daemon) {
		most[corev1.ResourceCPU] = resource.MustParse("100m")
		least = most
	}
	return accore.ResourceRequirements().WithRequests(least).WithLimits(most)
}

// guaranteed says whether a container has QoS class Guaranteed (kubernetes, pkg/apis/core/v1/helper/qos). A request defaults to the limit.
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

// account mounts the token into a container.
func account() *accore.VolumeMountApplyConfiguration {
	return accore.VolumeMount().WithName(accountVolume).WithMountPath(accountPath).WithReadOnly(true)
}

// daemonArgs are those that every daemon has.
func (p pod) daemonArgs(nameFlag, levelFlag string) []string {
	args := []string{
		p.App, "--namespace=$(POD_NAMESPACE)", "--" + nameFlag + "=" + p.Name, "--state-dir=" + statePath,
		"--pod-ip=$(POD_IP)", "--" + levelFlag + "=info",
	}
	if p.Instance > 0 {
		args = append(args, "--instance="+strconv.Itoa(p.Instance))
	}
	return args
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

// resources are the user's if set, else these requests and limits; and one of the resource that nodes with the VLAN have.
func (p pod) resources(cpu, memory, memoryLimit string) *accore.ResourceRequirementsApplyConfiguration {
	all := resources(cpu, memory, memoryLimit)
	if written := p.Placement.Resources; written != nil {
		all = desired.As[accore.ResourceRequirementsApplyConfiguration](written)
	}
	device := corev1.ResourceName(p.device)
	if _, written := ptr.Deref(all.Limits, nil)[device]; written || device == "" {
		return all
	}
	for _, list := range []**corev1.ResourceList{&all.Requests, &all.Limits} { // of an extended resource, both must be equal
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
