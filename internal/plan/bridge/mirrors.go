package bridge

import (
	"encoding/json"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// tagMirrors and digestMirrors are the entries of all sets; both kinds have the same.
func tagMirrors(sets []configv1.ImageTagMirrorSet) (all []configv1.ImageDigestMirrors) {
	for _, set := range sets {
		for _, entry := range set.Spec.ImageTagMirrors {
			all = append(all, configv1.ImageDigestMirrors(entry))
		}
	}
	return all
}

func digestMirrors(sets []configv1.ImageDigestMirrorSet) (all []configv1.ImageDigestMirrors) {
	for _, set := range sets {
		all = append(all, set.Spec.ImageDigestMirrors...)
	}
	return all
}

// mirrored are the repositories that may have a repository's images, in the order in which they are asked: the mirrors of the most specific
// source, then the repository itself, unless an entry forbids that (openshift/api config/v1, ImageDigestMirrors).
func mirrored(repository string, entries []configv1.ImageDigestMirrors) (all []string) {
	source := ""
	for _, e := range entries {
		if covers(e.Source, repository) > 0 && len(e.Source) > len(source) {
			source = e.Source
		}
	}
	never := false
	for _, e := range entries {
		if source == "" || e.Source != source {
			continue
		}
		for _, m := range e.Mirrors {
			if at := string(m) + repository[covers(source, repository):]; !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
		never = never || len(e.Mirrors) > 0 && e.MirrorSourcePolicy == configv1.NeverContactSource
	}
	if never || slices.Contains(all, repository) {
		return all
	}
	return append(all, repository)
}

// covers says how much of a repository is a source's, which names it, a path above it, its registry, or *. and the end of its registry.
func covers(source, repository string) int {
	if end, any := strings.CutPrefix(source, "*"); any {
		if registry := registryOf(repository); strings.HasSuffix(registry, end) {
			return len(registry)
		}
		return 0
	}
	if repository == source || strings.HasPrefix(repository, source+"/") {
		return len(source)
	}
	return 0
}

func registryOf(repository string) string {
	registry, _, _ := strings.Cut(repository, "/")
	return registry
}

func without[T comparable](all []T, some ...T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return slices.Contains(some, one) })
}

// placesOf adds the logins of a pull secret.
func placesOf(pull Secret, repositories []string) (all []Place) {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if pull.Secret != nil {
		_ = json.Unmarshal(pull.Data[PullSecretKey], &config) // SecretsValid says what is wrong with it
	}
	for _, repository := range repositories {
		all = append(all, Place{Repository: repository, Login: loginAt(repository, config.Auths)})
	}
	return all
}

// mostLogin is the size in octets of the largest login that is used. The author of a bridge may write larger ones, which the manager would
// keep for each bridge.
const mostLogin = 16 << 10

// loginAt is the login for a repository, or for the longest path above it, or for its registry (containers-auth.json(5)). A key may have
// the form of an address, as old clients write it: https://quay.io/v1/.
func loginAt(repository string, auths map[string]json.RawMessage) string {
	for at := repository; ; at = at[:strings.LastIndex(at, "/")] {
		keys := []string{at, "https://" + at, "https://" + at + "/v1/", "https://" + at + "/v2/"}
		if at == "docker.io" { // docker login writes that of Docker Hub (go-containerregistry v0.22.1, pkg/authn, DefaultAuthKey)
			keys = append(keys, "https://index.docker.io/v1/")
		}
		for _, key := range keys {
			if login, has := auths[key]; has && len(login) <= mostLogin {
				return string(login)
			}
		}
		if !strings.Contains(at, "/") {
			return ""
		}
	}
}
