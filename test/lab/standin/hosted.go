package standin

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// hostedObjectsSecret passes the hosted cluster's own objects to the pod that applies them there.
const hostedObjectsSecret = "hosted-cluster-objects"

// hostedObjects are what HyperShift's hosted-cluster-config-operator creates in the hosted cluster, as far as workers need it.
func (c Cluster) hostedObjects(secrets map[string]files, nodePorts map[string]int32) []client.Object {
	inSystem := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem}
	}
	return append([]client.Object{
		// A kubelet without a certificate may request one; the machine approver decides whether it gets it.
		userMay("node-bootstrapper", "system:node-bootstrapper", bootstrapper),
		// The API server reads logs and runs commands through the kubelet.
		userMay("kube-apiserver-kubelet-api", "system:kubelet-api-admin", "system:kube-apiserver"),
		&corev1.Secret{ObjectMeta: inSystem("konnectivity-agent"), Data: secrets["konnectivity-agent"]},
		&corev1.ConfigMap{ObjectMeta: inSystem("konnectivity-ca-bundle"), Data: map[string]string{"ca.crt": string(bundle(secrets, konnectivityCA))}},
		c.konnectivityAgent(nodePorts),
	}, apiEndpoints()...)
}

func userMay(name, role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// apiEndpoints make the kubernetes Service lead to the proxy that listens on every worker.
func apiEndpoints() []client.Object {
	const name, portName = "kubernetes", "https"
	meta := metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{workerAPIAddress}}},
		Ports:     []discoveryv1.EndpointPort{{Name: ptr.To(portName), Port: ptr.To[int32](apiPort), Protocol: ptr.To(corev1.ProtocolTCP)}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	return []client.Object{slice}
}

// konnectivityAgent is HyperShift's DaemonSet, flag for flag (hostedclusterconfigoperator/…/konnectivity).
func (c Cluster) konnectivityAgent(nodePorts map[string]int32) *appsv1.DaemonSet {
	const name = "konnectivity-agent"
	labels := map[string]string{"app": name}
	agent := corev1.Container{Name: name, Image: konnectivityImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/usr/bin/proxy-agent"},
		Args: []string{"--logtostderr=true",
			"--ca-cert", "/etc/konnectivity/ca/ca.crt",
			"--agent-cert", "/etc/konnectivity/agent/tls.crt", "--agent-key", "/etc/konnectivity/agent/tls.key",
			"--proxy-server-host", c.host(konnectivityServer), "--proxy-server-port", strconv.Itoa(int(c.port(konnectivityServer, nodePorts))),
			"--health-server-port", strconv.Itoa(konnectivityHealth), "--agent-identifiers=default-route=true",
			"--keepalive-time", "30s", "--probe-interval", "5s", "--sync-interval", "5s", "--sync-interval-cap", "30s", "--v", "3"},
		VolumeMounts: []corev1.VolumeMount{{Name: "agent-certs", MountPath: "/etc/konnectivity/agent"}, {Name: "konnectivity-ca", MountPath: "/etc/konnectivity/ca"}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "readyz", Port: intstr.FromInt32(konnectivityHealth), Scheme: corev1.URISchemeHTTP}}},
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			HostNetwork: true, DNSPolicy: corev1.DNSDefault, AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), FSGroup: ptr.To[int64](1000)},
			Containers:      []corev1.Container{agent},
			Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes: []corev1.Volume{
				{Name: "agent-certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: ptr.To[int32](0o640)}}},
				{Name: "konnectivity-ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "konnectivity-ca-bundle"}, DefaultMode: ptr.To[int32](0o640)}}},
			},
		}},
	}}
}

// hostedObjectFiles has a file for each object.
func (c Cluster) hostedObjectFiles(secrets map[string]files, nodePorts map[string]int32) (files, error) {
	all := files{}
	for i, o := range c.hostedObjects(secrets, nodePorts) {
		u, err := toApply(o)
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		all[fmt.Sprintf("%02d.yaml", i)] = text
	}
	return all, nil
}
