package bridge

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Lookup is what registries are asked for a bridge. All of them are named by an admin: in the mapping, as the cluster's mirrors, or by its own
// release.
type Lookup struct {
	// Component is one of a release, in Releases by the tag Version, whose image is wanted instead of a BlueField container image; else empty.
	Component string
	// Repository has the BlueField container images, Version is the tag of the wanted one.
	Repository, Version string
	// Digest is the release's if only that is known: then its config says the version.
	Digest string
	// Images and Releases are the places of both, in the order in which they are asked.
	Images, Releases []Place
	// TrustedCA are CAs of all of them, in PEM, besides those of the operating system.
	TrustedCA string
	// Proxy is the cluster's.
	Proxy Proxy
	// Cache is where the image is copied to; nil if it is not.
	Cache *Cache
}

// Proxy is the one of OpenShift's configuration. HTTPS and Except are what HTTPS_PROXY and NO_PROXY would be.
type Proxy struct{ HTTPS, Except string }

// Found is the image of a version, once it is found and copied.
func (l Lookup) Found(version string) string {
	if l.Cache != nil {
		return l.Cache.Pulled(version)
	}
	return l.Repository + ":" + version
}

// Cache is where an image is copied to: OpenShift's own registry.
type Cache struct {
	// Push is the start of the repository's name, by the registry's address within the cluster: a release's image is in Push-VERSION.
	Push Place
	// Pull is the same by the address at which DPUs reach it, with their login.
	Pull Place
	// Account may push there.
	Account types.NamespacedName
}

// image of a version in the cache, at one of its addresses.
func (c Cache) image(at Place, version string) string {
	return at.Repository + "-" + strings.ToLower(version) + ":" + version
}

// Pushed and Pulled are a version's image by the two addresses.
func (c Cache) Pushed(version string) string { return c.image(c.Push, version) }

// Pulled is what DPUs are installed with.
func (c Cache) Pulled(version string) string { return c.image(c.Pull, version) }

// Place is a repository.
type Place struct {
	Repository string
	// Login is an entry of a pull secret's auths, or empty.
	Login string
	// CA is that of its registry, in PEM, or empty.
	CA string
}

// Answer is what registries have said: an image that exists, or a reason why none is known. It is empty before the first has answered.
type Answer struct {
	Image           string
	Reason, Message string
}
