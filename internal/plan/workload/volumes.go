package workload

import (
	"k8s.io/apimachinery/pkg/api/resource"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
)

// Names inside our pods.
const (
	stateVolume   = "state"
	statePath     = "/state"
	healthPort    = "health"
	metricsPort   = "metrics"
	accountVolume = "token"
	accountPath   = "/var/run/secrets/kubernetes.io/serviceaccount" // where client-go looks (rest.InClusterConfig)
	apiProxy      = "api-proxy"
	apiVolume     = "api"
	apiPath       = "/api"
	apiSocket     = apiPath + "/api.sock"
)

// tunedVariable tells a daemon whether its attachment switches forwarding off.
const tunedVariable = "OOOI_VLAN_TUNED"

// tokenSeconds is the lifetime of the tokens that the API server mounts by default. Only a token with exactly this one remains valid while the
// API server is away for an hour (kubernetes, pkg/serviceaccount/claims.go, WarnOnlyBoundTokenExpirationSeconds).
const tokenSeconds = 60*60 + 7

func emptyDir(name string) *accore.VolumeApplyConfiguration {
	return accore.Volume().WithName(name).WithEmptyDir(accore.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("64Mi")))
}

// token is the volume that the API server by default mounts into every container (kubernetes,
// plugin/pkg/admission/serviceaccount/admission.go). We mount it only into containers that parse only what the API server and Envoy send.
func token() *accore.VolumeApplyConfiguration {
	return accore.Volume().WithName(accountVolume).WithProjected(accore.ProjectedVolumeSource().WithSources(
		accore.VolumeProjection().WithServiceAccountToken(accore.ServiceAccountTokenProjection().WithPath("token").WithExpirationSeconds(tokenSeconds)),
		accore.VolumeProjection().WithConfigMap(accore.ConfigMapProjection().WithName("kube-root-ca.crt").WithItems(accore.KeyToPath().WithKey("ca.crt").WithPath("ca.crt"))),
		accore.VolumeProjection().WithDownwardAPI(accore.DownwardAPIProjection().WithItems(
			accore.DownwardAPIVolumeFile().WithPath("namespace").WithFieldRef(accore.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace"))))))
}
