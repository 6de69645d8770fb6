package standin

// The names of HyperShift's Services, which are also the names of the workloads behind them.
const (
	kubeAPIServer       = "kube-apiserver"
	oauthServer         = "oauth-openshift"
	ignitionServer      = "ignition-server"
	ignitionServerProxy = "ignition-server-proxy"
	konnectivityServer  = "konnectivity-server"
	konnectivityLocal   = "konnectivity-server-local"
	etcdClient          = "etcd-client"
	etcdDiscovery       = "etcd-discovery"
	router              = "router"
)

// routeOf is the Route that publishes each Service. The ignition Route kept its name when the proxy was put in front.
var routeOf = map[string]string{
	kubeAPIServer:       "kube-apiserver",
	oauthServer:         "oauth",
	ignitionServerProxy: "ignition-server",
	konnectivityServer:  "konnectivity-server",
}

// Ports as HyperShift sets them; groundtruth_test.go compares them with its files.
const (
	apiPort               = 6443
	oauthPort             = 6443
	ignitionPort          = 9090
	ignitionProxyPort     = 8443
	routerPort            = 8443
	konnectivityPort      = 8091
	konnectivityLocalPort = 8090
	konnectivityHealth    = 2041
)

// The lab builds the images; no pod pulls one.
const (
	hyperkubeImage    = "e2e.local/hyperkube:1"
	konnectivityImage = "e2e.local/konnectivity:1"
	standinImage      = "e2e.local/standin:1"
)

const (
	componentLabel      = "hypershift.openshift.io/control-plane-component"
	requestServingLabel = "hypershift.openshift.io/request-serving-component"
	controlPlaneLabel   = "hypershift.openshift.io/hosted-control-plane"
	hostedClusterAnno   = "hypershift.openshift.io/cluster"
	nodePoolAnno        = "hypershift.openshift.io/nodePool"
	configVersionAnno   = "hypershift.openshift.io/nodePoolCurrentConfigVersion"
	configHashAnno      = "component.hypershift.openshift.io/config-hash"
	ignitionConfigAnno  = "hypershift.openshift.io/ignition-config"
	ignitionReachedAnno = "hypershift.openshift.io/ignition-reached"
)

// bootstrapper is the user of a kubelet that has no certificate of its own yet.
const bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
