// ovn-k8s-cni-overlay is the lab's stand-in for OVN-Kubernetes, whose CNI plugin has this name: no code of it is here. OVN and
// Open vSwitch below it are the real ones, started by `lab ovn`, whose directory they are found in by OVS_RUNDIR and OVN_RUNDIR.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/test/lab/ovnkube"
)

func main() {
	conf := ovnkube.Conf{CNIVersion: "1.0.0"}
	answer, err := run(&conf)
	if err != nil { // 999: a plugin's own error (CNI specification, section 2)
		answer = map[string]any{"cniVersion": conf.CNIVersion, "code": 999, "msg": err.Error()}
	}
	if answer != nil {
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(conf *ovnkube.Conf) (map[string]any, error) {
	command := os.Getenv("CNI_COMMAND")
	if command == "VERSION" {
		return map[string]any{"cniVersion": "1.1.0", "supportedVersions": []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}}, nil
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, conf); err != nil {
		return nil, err
	}
	sandbox := ovnkube.Sandbox{ID: os.Getenv("CNI_CONTAINERID"), Netns: os.Getenv("CNI_NETNS"), Interface: os.Getenv("CNI_IFNAME")}
	pod := arguments()
	switch command {
	case "ADD":
		return add(*conf, sandbox, pod["K8S_POD_NAMESPACE"], pod["K8S_POD_NAME"])
	case "DEL":
		return nil, ovnkube.Unplug(sandbox, ovnkube.PortName(conf.NetAttachDefName, pod["K8S_POD_NAMESPACE"], pod["K8S_POD_NAME"]))
	}
	return nil, nil
}

func arguments() map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Split(os.Getenv("CNI_ARGS"), ";") {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

func add(conf ovnkube.Conf, sandbox ovnkube.Sandbox, namespace, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pod, written, err := read(ctx, namespace, name, conf.NetAttachDefName)
	if err != nil {
		return nil, err
	}
	port, err := ovnkube.PortOf(conf, written, pod)
	if err != nil {
		return nil, err
	}
	if err := ovnkube.Plug(sandbox, port); err != nil {
		return nil, err
	}
	return result(conf.CNIVersion, sandbox, port), nil
}

// read gets the pod, and spec.config of the network as it is written.
func read(ctx context.Context, namespace, name, nad string) (*corev1.Pod, string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", err
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	nadNamespace, nadName, _ := strings.Cut(nad, "/")
	raw, err := client.RESTClient().Get().AbsPath("/apis/k8s.cni.cncf.io/v1/namespaces", nadNamespace, "network-attachment-definitions", nadName).DoRaw(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("net-attach-def %q, which netAttachDefName names: %w", nad, err)
	}
	var definition struct{ Spec struct{ Config string } }
	err = json.Unmarshal(raw, &definition)
	return pod, definition.Spec.Config, err
}

func result(version string, sandbox ovnkube.Sandbox, port ovnkube.Port) map[string]any {
	ips := []map[string]any{}
	for _, a := range port.Addresses {
		ips = append(ips, map[string]any{"version": "4", "interface": 0, "address": a.String()})
	}
	return map[string]any{
		"cniVersion": version,
		"interfaces": []map[string]any{{"name": sandbox.Interface, "mac": port.MAC.String(), "sandbox": sandbox.Netns}},
		"ips":        ips,
	}
}
