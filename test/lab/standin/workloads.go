package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workloads are the pods of the control plane. Each has a hash of the files that it mounts, so that a new certificate rolls it out anew, as
// HyperShift does.
func (c Cluster) workloads(config map[string]files) []client.Object {
	all := []client.Object{c.etcd().statefulSet(c, c.etcd().configHash(config))}
	for _, p := range c.deployments() {
		all = append(all, p.deployment(c, p.configHash(config)))
	}
	return all
}

func (c Cluster) deployments() []pod {
	all := []pod{
		c.apiServer(), c.controllerManager(), c.scheduler(),
		c.ignitionServer(), c.ignitionProxy(), c.oauth(),
		c.configOperator(),
	}
	if c.hasMachines() {
		all = append(all, c.machineApprover(), c.capiProvider())
	}
	if c.Strategy == Route {
		all = append(all, c.router())
	}
	return all
}

func (p pod) configHash(config map[string]files) string {
	h := sha256.New()
	for _, m := range p.mounts {
		content := config[m.keptIn+m.configMap]
		for _, file := range slices.Sorted(maps.Keys(content)) {
			fmt.Fprintf(h, "%s/%s %d\n", m.path, file, len(content[file]))
			h.Write(content[file])
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// etcd loses its data with its pod, and does not fsync: this control plane exists for minutes.
func (c Cluster) etcd() pod {
	run := container("etcd", hyperkubeImage, "/usr/bin/hyperkube", "etcd",
		"--data-dir=/var/lib/data", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=https://0.0.0.0:2379", "--advertise-client-urls=https://"+c.serviceHost(etcdClient)+":2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--listen-metrics-urls=http://0.0.0.0:2381",
		"--client-cert-auth", "--trusted-ca-file=/etc/etcd/tls/etcd-ca/ca.crt",
		"--cert-file=/etc/etcd/tls/server/server.crt", "--key-file=/etc/etcd/tls/server/server.key")
	run = serving(run, "metrics", 2381, corev1.URISchemeHTTP, "/readyz")
	run.Ports = append(run.Ports,
		corev1.ContainerPort{Name: "client", ContainerPort: 2379, Protocol: corev1.ProtocolTCP},
		corev1.ContainerPort{Name: "peer", ContainerPort: 2380, Protocol: corev1.ProtocolTCP})
	return pod{name: "etcd", run: []corev1.Container{run}, mounts: []mount{
		{path: "/var/lib/data"},
		{path: "/etc/etcd/tls/server", keptIn: "etcd-server-tls"},
		{path: "/etc/etcd/tls/etcd-ca", configMap: "etcd-ca"},
	}}
}

func (c Cluster) apiServer() pod {
	return pod{name: kubeAPIServer, serves: true,
		run: []corev1.Container{
			serving(container(kubeAPIServer, hyperkubeImage, c.apiServerCommand()...), "client", apiPort, corev1.URISchemeHTTPS, "/readyz"),
			ready(container(konnectivityServer, konnectivityImage, konnectivityServerCommand()...), konnectivityHealth, corev1.URISchemeHTTP, "/healthz"),
		},
		mounts: []mount{
			{path: "/etc/kubernetes/certs/aggregator-ca", configMap: "aggregator-client-ca"},
			{path: "/etc/kubernetes/certs/aggregator", keptIn: "kas-aggregator-crt"},
			{path: "/etc/kubernetes/certs/client-ca", configMap: "client-ca"},
			{path: "/etc/kubernetes/certs/etcd-ca", configMap: "etcd-ca"},
			{path: "/etc/kubernetes/certs/etcd", keptIn: "etcd-client-tls"},
			{path: "/etc/kubernetes/certs/konnectivity-ca", configMap: "konnectivity-ca-bundle"},
			{path: "/etc/kubernetes/certs/konnectivity-client", keptIn: "konnectivity-client"},
			{path: "/etc/kubernetes/certs/kubelet", keptIn: "kas-kubelet-client-crt"},
			{path: "/etc/kubernetes/certs/server", keptIn: "kas-server-crt"},
			{path: "/etc/kubernetes/certs/server-private", keptIn: "kas-server-private-crt"},
			{path: "/etc/kubernetes/egress-selector", configMap: "kas-egress-selector-config"},
			{path: "/etc/kubernetes/secrets/svcacct-key", keptIn: serviceAccountKeySecret},
			{path: "/etc/konnectivity/cluster", keptIn: "konnectivity-cluster"},
			{path: "/etc/konnectivity/server", keptIn: "konnectivity-server"},
			{path: "/etc/konnectivity/ca", configMap: "konnectivity-ca-bundle"},
		}}
}

func (c Cluster) apiServerCommand() []string {
	const certs = "/etc/kubernetes/certs/"
	return []string{"/usr/bin/hyperkube", "kube-apiserver",
		// The hosted cluster's kubernetes Service leads to the proxy on each worker, which no endpoint reconciler knows.
		"--advertise-address=" + workerAPIAddress, "--endpoint-reconciler-type=none",
		"--secure-port=6443", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--enable-aggregator-routing=true", "--enable-logs-handler=false", "--profiling=false",
		"--client-ca-file=" + certs + "client-ca/ca.crt",
		"--egress-selector-config-file=/etc/kubernetes/egress-selector/config.yaml",
		"--etcd-servers=https://" + c.serviceHost(etcdClient) + ":2379", "--etcd-cafile=" + certs + "etcd-ca/ca.crt",
		"--etcd-certfile=" + certs + "etcd/etcd-client.crt", "--etcd-keyfile=" + certs + "etcd/etcd-client.key",
		"--kubelet-certificate-authority=" + certs + "client-ca/ca.crt",
		"--kubelet-client-certificate=" + certs + "kubelet/tls.crt", "--kubelet-client-key=" + certs + "kubelet/tls.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--proxy-client-cert-file=" + certs + "aggregator/tls.crt", "--proxy-client-key-file=" + certs + "aggregator/tls.key",
		"--requestheader-client-ca-file=" + certs + "aggregator-ca/ca.crt", "--requestheader-allowed-names=system:openshift-aggregator",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
		"--service-account-key-file=/etc/kubernetes/secrets/svcacct-key/service-account.pub",
		"--service-account-signing-key-file=/etc/kubernetes/secrets/svcacct-key/service-account.key",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=" + certs + "server/tls.crt", "--tls-private-key-file=" + certs + "server/tls.key",
		"--tls-sni-cert-key=" + certs + "server-private/tls.crt," + certs + "server-private/tls.key",
	}
}

// konnectivityServerCommand is HyperShift's, flag for flag.
func konnectivityServerCommand() []string {
	return []string{"/usr/bin/proxy-server", "--logtostderr=true", "--log-file-max-size=0",
		"--cluster-cert", "/etc/konnectivity/cluster/tls.crt", "--cluster-key", "/etc/konnectivity/cluster/tls.key",
		"--server-cert", "/etc/konnectivity/server/tls.crt", "--server-key", "/etc/konnectivity/server/tls.key",
		"--server-ca-cert", "/etc/konnectivity/ca/ca.crt",
		"--server-port", "8090", "--agent-port", "8091", "--health-port", "2041", "--admin-port=8093",
		"--mode=http-connect", "--proxy-strategies=destHost,defaultRoute",
		"--keepalive-time", "30s", "--frontend-keepalive-time", "30s",
	}
}

const egressSelector = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: controlplane
  connection: {proxyProtocol: Direct}
- name: etcd
  connection: {proxyProtocol: Direct}
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://konnectivity-server-local:8090
        tlsConfig:
          caBundle: /etc/kubernetes/certs/konnectivity-ca/ca.crt
          clientCert: /etc/kubernetes/certs/konnectivity-client/tls.crt
          clientKey: /etc/kubernetes/certs/konnectivity-client/tls.key
`

func (c Cluster) controllerManager() pod {
	const name, kubeconfig = "kube-controller-manager", "/etc/kubernetes/secrets/svc-kubeconfig/kubeconfig"
	run := container(name, hyperkubeImage, "/usr/bin/hyperkube", name,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false", "--allocate-node-cidrs=false", "--use-service-account-credentials=true", "--cert-dir=/var/run/kubernetes",
		"--cluster-signing-cert-file=/etc/kubernetes/certs/cluster-signer/ca.crt", "--cluster-signing-key-file=/etc/kubernetes/certs/cluster-signer/ca.key",
		"--flex-volume-plugin-dir=/var/run/kubernetes", "--root-ca-file=/etc/kubernetes/certs/root-ca/ca.crt",
		"--service-account-private-key-file=/etc/kubernetes/certs/service-signer/service-account.key", "--profiling=false",
		"--controllers="+hostedControllers)
	return pod{name: name, init: []corev1.Container{afterAPIServer()},
		run: []corev1.Container{serving(run, "client", 10257, corev1.URISchemeHTTPS, "/healthz")}, mounts: []mount{
			{path: "/etc/kubernetes/secrets/svc-kubeconfig", keptIn: "kube-controller-manager-kubeconfig"},
			{path: "/etc/kubernetes/certs/cluster-signer", keptIn: clusterSigner.secret},
			{path: "/etc/kubernetes/certs/service-signer", keptIn: serviceAccountKeySecret},
			{path: "/etc/kubernetes/certs/root-ca", configMap: rootCA.secret},
			{path: "/var/run/kubernetes"},
		}}
}

// hostedControllers are those that workers and their pods need: here two cores run two whole clusters.
const hostedControllers = "certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller,certificatesigningrequest-cleaner-controller," +
	"node-lifecycle-controller,node-ipam-controller,pod-garbage-collector-controller,taint-eviction-controller," +
	"serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
	"namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller," +
	"deployment-controller,replicaset-controller,daemonset-controller,endpointslice-controller,endpoints-controller"

func (c Cluster) scheduler() pod {
	const name, kubeconfig = "kube-scheduler", "/etc/kubernetes/kubeconfig/kubeconfig"
	run := container(name, hyperkubeImage, "/usr/bin/hyperkube", name,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false", "--cert-dir=/var/run/kubernetes", "--profiling=false")
	return pod{name: name, init: []corev1.Container{afterAPIServer()},
		run: []corev1.Container{serving(run, "client", 10259, corev1.URISchemeHTTPS, "/healthz")}, mounts: []mount{
			{path: "/etc/kubernetes/kubeconfig", keptIn: "kube-scheduler-kubeconfig"},
			{path: "/var/run/kubernetes"},
		}}
}

func serve(what string, flags ...string) corev1.Container {
	return container(what, standinImage, append([]string{"/standin", "serve", what}, flags...)...)
}

func (c Cluster) ignitionServer() pod {
	run := serve(ignitionServer, "--namespace="+c.Namespace(), "--cert-dir=/var/run/secrets/ignition/serving-cert")
	return pod{name: ignitionServer, account: ignitionServer,
		run:    []corev1.Container{serving(run, "https", ignitionPort, corev1.URISchemeHTTPS, "/healthz")},
		mounts: []mount{{path: "/var/run/secrets/ignition/serving-cert", keptIn: "ignition-server"}}}
}

func (c Cluster) ignitionProxy() pod {
	run := serve(ignitionServerProxy, "--cert-dir=/etc/ssl/serving-cert", "--backend=https://"+ignitionServer+":443", "--backend-ca=/etc/ssl/root-ca/ca.crt")
	run.Ports = []corev1.ContainerPort{{Name: "https", ContainerPort: ignitionProxyPort, Protocol: corev1.ProtocolTCP}}
	return pod{name: ignitionServerProxy, serves: true, run: []corev1.Container{ready(run, ignitionProxyPort, corev1.URISchemeHTTPS, "/healthz")},
		mounts: []mount{{path: "/etc/ssl/serving-cert", keptIn: "ignition-server-serving-cert"}, {path: "/etc/ssl/root-ca", configMap: rootCA.secret}}}
}

func (c Cluster) oauth() pod {
	run := serve(oauthServer, "--cert-dir=/etc/kubernetes/certs/serving-cert", "--host="+c.host(oauthServer))
	return pod{name: oauthServer, serves: true, run: []corev1.Container{ready(run, oauthPort, corev1.URISchemeHTTPS, "/healthz")},
		mounts: []mount{{path: "/etc/kubernetes/certs/serving-cert", keptIn: "oauth-server-crt"}}}
}

// router is the HAProxy that HyperShift runs if the API itself is published by Route: by SNI to a Service, everything else to the API.
func (c Cluster) router() pod {
	run := serve(router, "--default="+kubeAPIServer+":6443",
		"--to="+c.host(ignitionServerProxy)+"="+ignitionServerProxy+":443",
		"--to="+c.host(oauthServer)+"="+oauthServer+":6443",
		"--to="+c.host(konnectivityServer)+"="+konnectivityServer+":8091")
	run.Ports = []corev1.ContainerPort{{Name: "https", ContainerPort: routerPort, Protocol: corev1.ProtocolTCP}}
	return pod{name: router, app: "private-router", serves: true, run: []corev1.Container{ready(run, 9444, corev1.URISchemeHTTP, "/haproxy_ready")}}
}

// hostedKubeconfig is where pods that use the hosted cluster have its kubeconfig.
const hostedKubeconfig = "/etc/kubernetes/kubeconfig/kubeconfig"

func (c Cluster) inHostedCluster(name, account string, flags ...string) pod {
	return pod{name: name, account: account, init: []corev1.Container{afterAPIServer()},
		run:    []corev1.Container{ready(serve(name, append(flags, "--kubeconfig="+hostedKubeconfig)...), 8081, corev1.URISchemeHTTP, "/readyz")},
		mounts: []mount{{path: "/etc/kubernetes/kubeconfig", keptIn: "service-network-admin-kubeconfig"}}}
}

func (c Cluster) machineApprover() pod {
	return c.inHostedCluster("machine-approver", "machine-approver", "--namespace="+c.Namespace())
}

func (c Cluster) capiProvider() pod {
	return c.inHostedCluster("capi-provider", "capi-provider", "--namespace="+c.Namespace())
}

func (c Cluster) configOperator() pod {
	p := c.inHostedCluster("hosted-cluster-config-operator", "", "--objects=/etc/hosted")
	p.mounts = append(p.mounts, mount{path: "/etc/hosted", keptIn: hostedObjectsSecret})
	return p
}
