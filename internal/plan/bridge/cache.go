package bridge

import (
	"cmp"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

const (
	// CacheKey is the mapping's key for the namespace of OpenShift's own registry to which images of RepositoryKey are copied; without it, none
	// is (docs/adr/0026-the-manager-copies-images.md).
	CacheKey = "cache"
	// cacheAccount is the ServiceAccount in that namespace that may push (config/components/image-cache).
	cacheAccount = "oooi-image-cache"
)

// Reasons for which an image is not copied yet, besides those of a look-up.
const (
	Caching        = "Caching"
	CacheFailed    = "CacheFailed"
	CacheNotPulled = "CacheNotPulled"
)

// CacheNamespace is that of the cache; empty if images are not copied.
func (in Input) CacheNamespace() string {
	if in.Mapping == nil {
		return ""
	}
	return strings.TrimSpace(in.Mapping.Data[CacheKey])
}

// cache is where the images of a repository are copied to, or the finding that says why they cannot be. OpenShift's image registry operator
// reports both addresses, and none of a registry that is Removed (cluster-image-registry-operator, pkg/operator/imageconfig.go).
func (in Input) cache(repository string) (*Cache, *finding.Finding) {
	const kind = dpuv1.ConditionBlueFieldContainerImageAvailable
	namespace := in.CacheNamespace()
	if namespace == "" {
		return nil, nil
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		f := finding.Wait(kind, "CacheInvalid").At("spec.ocpReleaseImage").Say("key %s of ConfigMap %s is no name of a namespace: write the one to which images are copied, e.g. oooi-images, or remove the key", CacheKey, in.Settings.Images)
		return nil, &f
	}
	if in.ImageConfig == nil || in.ImageConfig.Status.InternalRegistryHostname == "" {
		f := finding.Wait(kind, "CacheNotAvailable").At("spec.ocpReleaseImage").Say("ConfigMap %s has key %s, but the cluster runs no registry of its own (image.config.openshift.io/cluster reports no internalRegistryHostname): set managementState: Managed in configs.imageregistry.operator.openshift.io/cluster, or remove the key", in.Settings.Images, CacheKey)
		return nil, &f
	}
	status := in.ImageConfig.Status
	if len(status.ExternalRegistryHostnames) == 0 {
		f := finding.Wait(kind, "CacheNotExposed").At("spec.ocpReleaseImage").Say("ConfigMap %s has key %s, but DPUs do not reach the cluster's registry (image.config.openshift.io/cluster reports no externalRegistryHostnames): set defaultRoute: true in configs.imageregistry.operator.openshift.io/cluster, or remove the key", in.Settings.Images, CacheKey)
		return nil, &f
	}
	external := status.ExternalRegistryHostnames[0]
	authority, problem := in.authority(external)
	if problem != nil {
		return nil, problem
	}
	name := "/" + namespace + "/" + path.Base(repository)
	pull := placesOf(in.PullSecret, []string{external + name})[0]
	pull.CA = cmp.Or(authority, textOf(in.IngressCA, bundleKey))
	return &Cache{
		Push: Place{Repository: status.InternalRegistryHostname + name, CA: textOf(in.ServiceCA, "service-ca.crt")},
		Pull: pull, Account: types.NamespacedName{Namespace: namespace, Name: cacheAccount},
	}, nil
}

// CacheCAKeys name the ConfigMaps in which OpenShift publishes the CAs of its registry: within the cluster the service CA, from outside that of
// its ingress (openshift/cluster-ingress-operator, publishCertificate). Empty if nothing is copied.
func (in Input) CacheCAKeys() (ofServices, ofIngress types.NamespacedName) {
	if namespace := in.CacheNamespace(); namespace != "" {
		ofServices = types.NamespacedName{Namespace: namespace, Name: "openshift-service-ca.crt"}
		ofIngress = types.NamespacedName{Namespace: "openshift-config-managed", Name: "default-ingress-cert"}
	}
	return ofServices, ofIngress
}
