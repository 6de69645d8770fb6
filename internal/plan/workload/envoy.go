package workload

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
)

func (p pod) proxy(s input.Settings, config string) *accore.PodTemplateSpecApplyConfiguration {
	xds := accore.VolumeMount().WithName(xdsVolume).WithMountPath(xdsPath)
	// The kubelet starts containers in order, so the sidecar comes before Envoy: see completesBootstrap.
	template := p.template(s, accore.PodSpec().WithTerminationGracePeriodSeconds(proxyGrace).WithContainers(p.sidecar(s, xds), p.envoy(s, xds)).
		WithVolumes(emptyDir(xdsVolume), accore.Volume().WithName(bootstrapVolume).WithConfigMap(accore.ConfigMapVolumeSource().WithName(names.EnvoyBootstrap(p.Name, p.Instance)))).
		WithTolerations(unreachable(corev1.TaintNodeNotReady), unreachable(corev1.TaintNodeUnreachable)))
	template.Spec.WithAffinity(p.beside())
	return template.WithAnnotations(map[string]string{names.AnnotationBootstrap: desired.Digest(config)})
}

func (p pod) sidecar(s input.Settings, xds *accore.VolumeMountApplyConfiguration) *accore.ContainerApplyConfiguration {
	limit := accore.EnvVar().WithName(bootstrap.MemoryLimitVariable).WithValueFrom(accore.EnvVarSource().
		WithResourceFieldRef(accore.ResourceFieldSelector().WithContainerName(envoyContainer).WithResource("limits.memory").WithDivisor(resource.MustParse("1"))))
	return p.daemon(s, append(p.daemonArgs("proxy-name", "proxy-log-level"), "--xds-socket="+bootstrap.DefaultSocket)...).
		WithEnv(limit).WithLifecycle(completesBootstrap()).WithResources(resources("10m", "32Mi", "128Mi")).
		WithVolumeMounts(account(), xds, accore.VolumeMount().WithName(bootstrapVolume).WithMountPath(bootstrapPath).WithReadOnly(true))
}

// completesBootstrap completes Envoy's bootstrap on Envoy's node, because only there the limits are known at which Envoy crashes. The kubelet
// starts Envoy when the hook is done. The end of an init container it would notice only when it next lists containers, a third of the time
// that a client of a killed proxy waited. If the hook fails, there is no bootstrap, and Envoy does not start.
func completesBootstrap() *accore.LifecycleApplyConfiguration {
	return accore.Lifecycle().WithPostStart(accore.LifecycleHandler().WithExec(accore.ExecAction().WithCommand(
		"/oooi", "proxy", "bootstrap", "--template="+bootstrapPath+"/"+BootstrapKey, "--output="+xdsPath+"/"+BootstrapKey, "--xds-socket="+bootstrap.DefaultSocket)))
}

func (p pod) envoy(s input.Settings, xds *accore.VolumeMountApplyConfiguration) *accore.ContainerApplyConfiguration {
	return accore.Container().WithName(envoyContainer).WithImage(cmp.Or(p.EnvoyImage, s.EnvoyImage)).
		WithCommand("/usr/local/bin/envoy").WithArgs(bootstrap.Arguments(xdsPath + "/" + BootstrapKey)...).
		WithSecurityContext(restricted()).WithResources(p.resources("50m", "128Mi", "2Gi")).WithVolumeMounts(xds).
		// A deleted pod is replaced while it ends: it serves until the new one's network takes over its address.
		WithLifecycle(accore.Lifecycle().WithPreStop(accore.LifecycleHandler().WithSleep(accore.SleepAction().WithSeconds(proxyGrace))))
}

// unreachable keeps a pod on a node that does not report: it may still serve the VLAN. Who finds that it does not replaces it (lost). Where
// nobody can, as without a manager, Kubernetes does.
func unreachable(taint string) *accore.TolerationApplyConfiguration {
	return accore.Toleration().WithKey(taint).WithOperator(corev1.TolerationOpExists).WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(EvictedSeconds)
}

// beside keeps a pod from the node of one that is lost, which Kubernetes may still take for sound. It prefers a node without the other instance, as
// apart does, but does not mind the pod that it replaces, which still ends.
func (p pod) beside() *accore.AffinityApplyConfiguration {
	lost := p.selector()
	lost[names.LabelLost] = "true"
	others := acmeta.LabelSelectorRequirement().WithKey(names.LabelOrdinal).WithOperator(metav1.LabelSelectorOpExists)
	if p.Instance > 0 {
		others.WithOperator(metav1.LabelSelectorOpNotIn).WithValues(strconv.Itoa(p.Instance))
	}
	affinity := p.apart()
	affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector.WithMatchExpressions(others)
	affinity.PodAntiAffinity.WithRequiredDuringSchedulingIgnoredDuringExecution(
		accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(acmeta.LabelSelector().WithMatchLabels(lost)))
	return affinity
}

// Names inside the proxy's pod.
const (
	envoyContainer  = "envoy"
	bootstrapVolume = "bootstrap"
	bootstrapPath   = "/etc/envoy"
	xdsVolume       = "xds"
	xdsPath         = "/xds"
)

// BootstrapKey is the key of Envoy's bootstrap in its ConfigMap.
const BootstrapKey = "bootstrap.yaml"

// proxyGrace is how many seconds Envoy has to end: its preStop hook takes all of them.
const proxyGrace = 2

// EvictedSeconds is how long the proxy's pod stays bound to a node that Kubernetes takes for lost, whoever finds it.
const EvictedSeconds = 300

// UnreachableSeconds is how long the proxy's pod stays bound to a lost node before another may take its address, if no DNS instance finds it.
const UnreachableSeconds = 30
