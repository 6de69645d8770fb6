package bridge

// Lookup is what registries are asked for a bridge. All of them are named by an admin: in the mapping, or as the cluster's mirrors.
type Lookup struct {
	// Repository has the BlueField container images, Version is the tag of the wanted one.
	Repository, Version string
	// Digest is the release's if only that is known: then its config says the version.
	Digest string
	// Images and Releases are the places of both, in the order in which they are asked.
	Images, Releases []Place
	// TrustedCA are CAs of all of them, in PEM, besides those of the operating system.
	TrustedCA string
}

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
