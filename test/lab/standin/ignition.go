package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// payload is the config that the ignition server returns to a worker with a token: what the kubelet needs to join, and the proxy through
// which the worker's pods reach the API.
func (c Cluster) payload(cfg config, nodePorts map[string]int32) ([]byte, error) {
	kubelet, err := yaml.Marshal(kubeletConfiguration)
	if err != nil {
		return nil, err
	}
	machineConfig, err := json.Marshal(encapsulated)
	if err != nil {
		return nil, err
	}
	proxy, err := c.apiProxyFiles(nodePorts)
	if err != nil {
		return nil, err
	}
	return json.Marshal(ignition.Config{
		Ignition: ignition.Ignition{Version: "3.2.0"},
		Storage: ignition.Storage{Files: append(proxy,
			file("/etc/kubernetes/kubeconfig", 0o600, cfg.secrets["bootstrap-kubeconfig"]["kubeconfig"]),
			file("/etc/kubernetes/ca.crt", 0o644, cfg.configMaps["root-ca"]["ca.crt"]),
			file("/etc/kubernetes/kubelet-ca.crt", 0o644, cfg.configMaps["client-ca"]["ca.crt"]),
			file("/etc/kubernetes/kubelet.yaml", 0o644, kubelet),
			file("/etc/ignition-machine-config-encapsulated.json", 0o644, machineConfig),
		)},
	})
}

// kubeletConfiguration is small because the worker is: no systemd, and the kubelet manages cgroups itself. The kubelet requests its serving
// certificate rather than signing it itself, so that the machine approver has its second decision to make. Without a cgroup for each pod,
// which it would read every two seconds, it needs a fifth less of an emulated processor.
var kubeletConfiguration = map[string]any{
	"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
	"cgroupDriver": "cgroupfs", "failSwapOn": false, "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{},
	"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
	"authentication": map[string]any{
		"anonymous": map[string]any{"enabled": false},
		"webhook":   map[string]any{"enabled": true},
		"x509":      map[string]any{"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"},
	},
	"authorization":      map[string]any{"mode": "Webhook"},
	"serverTLSBootstrap": true, "rotateCertificates": true,
	"clusterDomain": "cluster.local", "resolvConf": "/etc/resolv.conf",
	"staticPodPath":             "/etc/kubernetes/manifests",
	"nodeStatusUpdateFrequency": "5s",
}

// encapsulated is the MachineConfig by which a node of CoreOS knows its operating system's image: the machine-config-daemon's first boot reads
// it (machine-config-operator, pkg/controller/common, MachineConfigEncapsulatedPath).
var encapsulated = map[string]any{
	"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": map[string]any{"name": "rendered-worker"},
	"spec": map[string]any{"osImageURL": "e2e.local/ocp/rhel-coreos:1", "config": map[string]any{"ignition": map[string]any{"version": "3.2.0"}}},
}

func file(path string, mode int, content []byte) ignition.File {
	return ignition.File{
		Node:          ignition.Node{Path: path, Overwrite: ptr.To(true)},
		FileEmbedded1: ignition.FileEmbedded1{Mode: ptr.To(mode), Contents: ignition.Resource{Source: ptr.To(dataURL(content))}},
	}
}

func dataURL(content []byte) string {
	return "data:text/plain;base64," + base64.StdEncoding.EncodeToString(content)
}

// tokenSecret is the Secret by which the ignition server knows a token: HyperShift's token-<pool>-<hash>.
func (c Cluster) tokenSecret(existing files, config []byte) *corev1.Secret {
	token := existing["token"]
	if token == nil {
		token = []byte(uuid.NewString())
	}
	s := &corev1.Secret{ObjectMeta: c.meta("token-" + c.nodePool() + "-" + c.configVersion()), Data: map[string][]byte{
		"token": token, "payload": config, "release": []byte(c.release()),
	}}
	s.Annotations = map[string]string{ignitionConfigAnno: "true", nodePoolAnno: HostedClusterNamespace + "/" + c.nodePool()}
	return s
}

// configVersion stands in for HyperShift's hash over a NodePool's release and machine configs.
func (c Cluster) configVersion() string {
	sum := sha256.Sum256([]byte(c.nodePool() + releaseImage))
	return hex.EncodeToString(sum[:])[:8]
}

// userData is what a virtual machine boots with: where its config is, the token for it, and the CA to trust.
func (c Cluster) userData(endpoint string, token, ca []byte) ([]byte, error) {
	return json.Marshal(ignition.Config{Ignition: ignition.Ignition{
		Version:  "3.2.0",
		Security: ignition.Security{TLS: ignition.TLS{CertificateAuthorities: []ignition.Resource{{Source: ptr.To(dataURL(ca))}}}},
		Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{
			Source: ptr.To("https://" + endpoint + "/ignition"),
			HTTPHeaders: ignition.HTTPHeaders{
				{Name: "Authorization", Value: ptr.To("Bearer " + base64.StdEncoding.EncodeToString(token))},
				{Name: "NodePool", Value: ptr.To(HostedClusterNamespace + "/" + c.nodePool())},
				{Name: "TargetConfigVersionHash", Value: ptr.To(c.configVersion())},
			},
		}}},
	}})
}
