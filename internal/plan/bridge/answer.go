package bridge

// Lookup is what registries are asked for a bridge. All of them are named by an admin: in the mapping, or as the cluster's mirrors.
type Lookup struct {
	// Repository has the BlueField container images, Version is the tag of the wanted one.
	Repository, Version string
	// Digest is the release's if only that is known: then its config says the version.
	Digest string
	// Images and Releases are the places of both, in the order in which they are asked.
	Images, Releases []Place
}

// Place is a repository, and how to log in there: an entry of a pull secret's auths, or empty.
type Place struct{ Repository, Login string }

// Answer is what registries have said: an image that exists, or a reason why none is known. It is empty before the first has answered.
type Answer struct {
	Image           string
	Reason, Message string
}
