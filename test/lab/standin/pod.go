package standin

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// pod is what a workload is made from; deployment and statefulSet add what HyperShift does.
type pod struct {
	name, account string
	app           string // the label that selects the pod, if it is not the name
	serves        bool   // workers connect to it
	init, run     []corev1.Container
	mounts        []mount
}

// mount is a Secret, a ConfigMap or, with neither, an empty directory, mounted in every container of the pod.
type mount struct{ path, keptIn, configMap string }

func (m mount) source() corev1.VolumeSource {
	switch {
	case m.keptIn != "":
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.keptIn, DefaultMode: ptr.To[int32](0o640)}}
	case m.configMap != "":
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.configMap}}}
	}
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
}

func container(name, image string, command ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Command: command, ImagePullPolicy: corev1.PullNever,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Env:                      []corev1.EnvVar{{Name: "GOGC", Value: "400"}}, // as in test/lab/node/start.sh
		Resources:                corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("20Mi")}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// serving adds a container's port and a readiness probe every second: the lab cannot wait ten.
func serving(c corev1.Container, portName string, number int32, scheme corev1.URIScheme, readyPath string) corev1.Container {
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: portName, ContainerPort: number, Protocol: corev1.ProtocolTCP})
	return ready(c, number, scheme, readyPath)
}

func ready(c corev1.Container, number int32, scheme corev1.URIScheme, readyPath string) corev1.Container {
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: readyPath, Port: intstr.FromInt32(number), Scheme: scheme}},
		PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3,
	}
	return c
}

// afterAPIServer keeps a pod from starting before the hosted API answers, as HyperShift's availability prober does.
func afterAPIServer() corev1.Container {
	return container("availability-prober", standinImage, "/standin", "wait", "https://"+kubeAPIServer+":6443/readyz")
}

func (p pod) selector() map[string]string { return map[string]string{"app": cmp.Or(p.app, p.name)} }

func (p pod) template(c Cluster, configHash string) corev1.PodTemplateSpec {
	labels := map[string]string{"app": p.selector()["app"], componentLabel: p.name, controlPlaneLabel: c.Namespace()}
	if p.serves {
		labels[requestServingLabel] = "true"
	}
	spec := corev1.PodSpec{
		InitContainers: p.init, Containers: p.run,
		ServiceAccountName: p.account, AutomountServiceAccountToken: ptr.To(p.account != ""), EnableServiceLinks: ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), FSGroup: ptr.To[int64](65532),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for i, m := range p.mounts {
		name := fmt.Sprintf("files-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: m.source()})
		for i := range spec.Containers {
			spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: m.path})
		}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{configHashAnno: configHash}}, Spec: spec}
}

func (p pod) deployment(c Cluster, configHash string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: c.meta(p.name), Spec: appsv1.DeploymentSpec{
		Replicas:             ptr.To[int32](1),
		RevisionHistoryLimit: ptr.To[int32](2),
		Selector:             &metav1.LabelSelector{MatchLabels: p.selector()},
		Template:             p.template(c, configHash),
	}}
}

func (p pod) statefulSet(c Cluster, configHash string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: c.meta(p.name), Spec: appsv1.StatefulSetSpec{
		Replicas:    ptr.To[int32](1),
		ServiceName: etcdDiscovery,
		Selector:    &metav1.LabelSelector{MatchLabels: p.selector()},
		Template:    p.template(c, configHash),
	}}
}
