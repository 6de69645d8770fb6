package standin

import (
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The hosted cluster's own networks: HyperShift's defaults. They exist only inside the worker.
const (
	clusterNetwork      = "10.132.0.0/14"
	serviceNetwork      = "172.31.0.0/16"
	serviceNetworkFirst = "172.31.0.1"
)

// config is everything that the pods mount, and that workers get: Secrets and ConfigMaps by name.
type config struct{ secrets, configMaps map[string]files }

// all has both, for the hash that rolls a pod out. Only root-ca is the name of both; there, the ConfigMap is a part of the Secret.
func (f config) all() map[string]files {
	all := maps.Clone(f.secrets)
	maps.Copy(all, f.configMaps)
	return all
}

// configure makes what the pods mount, from the existing keys and the published addresses.
func (c Cluster) configure(existing map[string]files, nodePorts map[string]int32, now time.Time) (config, error) {
	secrets, err := c.secrets(existing, now)
	if err != nil {
		return config{}, err
	}
	for name, k := range c.kubeconfigs(nodePorts) {
		if secrets[name], err = k.write(secrets); err != nil {
			return config{}, fmt.Errorf("writing the kubeconfig %s: %w", name, err)
		}
	}
	if secrets[hostedObjectsSecret], err = c.hostedObjectFiles(secrets, nodePorts); err != nil {
		return config{}, err
	}
	return config{secrets: secrets, configMaps: map[string]files{
		"root-ca":                    {"ca.crt": bundle(secrets, rootCA)},
		"client-ca":                  {"ca.crt": bundle(secrets, clusterSigner)},
		"aggregator-client-ca":       {"ca.crt": bundle(secrets, aggregatorCA)},
		"etcd-ca":                    {"ca.crt": bundle(secrets, etcdSigner)},
		"konnectivity-ca-bundle":     {"ca.crt": bundle(secrets, konnectivityCA)},
		"kas-egress-selector-config": {"config.yaml": []byte(egressSelector)},
	}}, nil
}

// kubeconfig is a user (a certificate's Secret) and the server that it connects to.
type kubeconfig struct{ user, server, serverName string }

func (c Cluster) kubeconfigs(nodePorts map[string]int32) map[string]kubeconfig {
	inside := "https://" + kubeAPIServer + ":6443"
	outside := "https://" + net.JoinHostPort(c.host(kubeAPIServer), strconv.Itoa(int(c.port(kubeAPIServer, nodePorts))))
	return map[string]kubeconfig{
		"admin-kubeconfig":                   {user: "system-admin-client", server: outside},
		"bootstrap-kubeconfig":               {user: "kas-bootstrap-client", server: outside},
		"service-network-admin-kubeconfig":   {user: "system-admin-client", server: inside},
		"kube-controller-manager-kubeconfig": {user: "kube-controller-manager", server: inside},
		"kube-scheduler-kubeconfig":          {user: "kube-scheduler-client", server: inside},
	}
}

func (k kubeconfig) write(secrets map[string]files) (files, error) {
	user := secrets[k.user]
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: k.server, TLSServerName: k.serverName, CertificateAuthorityData: bundle(secrets, rootCA)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {ClientCertificateData: user["tls.crt"], ClientKeyData: user["tls.key"]}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "cluster", AuthInfo: "admin", Namespace: "default"}},
		CurrentContext: "admin",
	})
	return files{"kubeconfig": text}, err
}

// objects are the Secrets and ConfigMaps, where HyperShift has them.
func (f config) objects(c Cluster) (secrets []*corev1.Secret, configMaps []*corev1.ConfigMap) {
	for name, content := range f.secrets {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: c.meta(name), Data: content})
	}
	for name, content := range f.configMaps {
		m := &corev1.ConfigMap{ObjectMeta: c.meta(name), Data: map[string]string{}}
		for file, text := range content {
			m.Data[file] = string(text)
		}
		configMaps = append(configMaps, m)
	}
	return secrets, configMaps
}
