package standin

import (
	"fmt"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// apiProxyFiles give each worker the proxy at 172.20.0.1 that its pods use: the address, as HyperShift's unit apiserver-ip.service sets it
// up, and the static pod that listens there (nodepool/apiserver-haproxy).
func (c Cluster) apiProxyFiles(nodePorts map[string]int32) ([]ignition.File, error) {
	address := fmt.Sprintf("#!/bin/sh\nip addr add %[1]s/32 brd %[1]s scope host dev lo\nip route add %[1]s/32 dev lo scope link src %[1]s\n", workerAPIAddress)
	manifest, err := yaml.Marshal(c.apiProxy(nodePorts))
	if err != nil {
		return nil, fmt.Errorf("writing the static pod of the API's proxy: %w", err)
	}
	return []ignition.File{
		file("/usr/local/bin/setup-apiserver-ip.sh", 0o755, []byte(address)),
		file("/etc/kubernetes/manifests/kube-apiserver-proxy.yaml", 0o644, manifest),
	}, nil
}

func (c Cluster) apiProxy(nodePorts map[string]int32) *corev1.Pod {
	const name = "kube-apiserver-proxy"
	api := hostPort(c.host(kubeAPIServer), c.port(kubeAPIServer, nodePorts))
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": name}},
		Spec: corev1.PodSpec{
			HostNetwork: true, PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{Name: "haproxy", Image: "e2e.local/" + name + ":1", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/" + name, "--listen", hostPort(workerAPIAddress, apiPort), "--to", api}}},
		},
	}
}
