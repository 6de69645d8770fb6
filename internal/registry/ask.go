package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// patience is how long one place may take that has no layer to send.
const patience = 15 * time.Second

// label of a release's config that has its version (dpf-hcp-provisioner-operator, bfocplookup/image_lookup.go, 31ded85b).
const label = "io.openshift.release"

// architecture of a BlueField.
const architecture = "arm64"

// errNoRelease means that an image is there, but is no release that a BlueField can run.
type errNoRelease string

func (e errNoRelease) Error() string { return string(e) }

// look asks for the image of a release, and before that for the release's version, if it is not known. It returns the version and the place
// that has the image, too.
func (l *Lookups) look(ctx context.Context, want bridge.Lookup) (version string, at bridge.Place, answer bridge.Answer) {
	version = want.Version
	if want.Component != "" {
		image, _, failed := l.firstOf(ctx, want, want.Releases, ":"+version, imageOf(want.Component))
		failed.Image = image
		return "", at, failed
	}
	if version == "" {
		if version, _, answer = l.firstOf(ctx, want, want.Releases, "@"+want.Digest, versionOf); answer.Reason != "" {
			return "", at, answer
		}
	}
	if _, at, answer = l.firstOf(ctx, want, want.Images, ":"+version, exists); answer.Reason != "" {
		return version, at, answer
	}
	return version, at, bridge.Answer{Image: want.Repository + ":" + version}
}

// severity of reasons: of several places that fail, the last of these reasons is the one to mend.
var severity = []string{bridge.RegistryUnreachable, bridge.ImageNotFound, bridge.InvalidReleaseImage, bridge.RegistryUnauthorized}

// firstOf asks places for an image, in their order, until one answers.
func (l *Lookups) firstOf(ctx context.Context, want bridge.Lookup, places []bridge.Place, image string, ask func(name.Reference, ...remote.Option) (string, error)) (said string, by bridge.Place, failed bridge.Answer) {
	var messages []string
	for _, at := range places {
		said, err := l.at(ctx, want, at, image, ask)
		if err == nil {
			return said, at, bridge.Answer{}
		}
		reason, text := why(err)
		if slices.Index(severity, reason) > slices.Index(severity, failed.Reason) {
			failed.Reason = reason
		}
		messages = append(messages, fmt.Sprintf("%s%s: %s", at.Repository, image, text))
	}
	failed.Message = strings.Join(messages, "; ")
	return "", by, failed
}

// at asks in one place, once: who calls has pauses of his own.
func (l *Lookups) at(ctx context.Context, want bridge.Lookup, at bridge.Place, image string, ask func(name.Reference, ...remote.Option) (string, error)) (string, error) {
	within, most := patience, int64(mostOfBody)
	if want.Component != "" { // what a release lists is in a layer
		within, most = 8*patience, mostOfList
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ref, options, done, err := l.reach(ctx, want, at, image, guarded{most: most})
	if err != nil {
		return "", err
	}
	defer done()
	return ask(ref, options...)
}

// reach is an image in a place, and how it is asked there for a look-up: once, by HTTPS, with the place's login and CA, behind a guard.
func (l *Lookups) reach(ctx context.Context, want bridge.Lookup, at bridge.Place, image string, guard guarded) (ref name.Reference, options []remote.Option, done func(), err error) {
	if ref, err = name.ParseReference(at.Repository + image); err != nil {
		return nil, nil, nil, errNoRelease("is no image's name")
	}
	login := authn.AuthConfig{}
	if at.Login != "" && json.Unmarshal([]byte(at.Login), &login) != nil { // the error may quote it
		return nil, nil, nil, errLogin
	}
	transport, done, err := l.connecting(want, at)
	if err != nil {
		return nil, nil, nil, err
	}
	guard.next = transport
	return ref, []remote.Option{
		remote.WithContext(ctx), remote.WithAuth(authn.FromConfig(login)), remote.WithTransport(guard), remote.WithUserAgent("oooi"),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryPredicate(func(error) bool { return false }), remote.WithRetryStatusCodes(),
	}, done, nil
}

// exists asks by HEAD, which registries do not count as a pull.
func exists(ref name.Reference, options ...remote.Option) (string, error) {
	_, err := remote.Head(ref, options...)
	return "", err
}

// versionOf a release is in its config.
func versionOf(ref name.Reference, options ...remote.Option) (string, error) {
	image, err := imageAt(ref, options...)
	if err != nil {
		return "", err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	version := bridge.Version(config.Config.Labels[label])
	if _, err := name.NewTag("example.com/any:" + version); version == "" || err != nil {
		return "", errNoRelease(fmt.Sprintf("has no version in its label %s", label))
	}
	return version, nil
}

// imageAt is what a registry has there for a BlueField.
func imageAt(ref name.Reference, options ...remote.Option) (v1.Image, error) {
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, err
	}
	return imageFor(found)
}

// imageFor a BlueField: of a release for several architectures its own.
func imageFor(found *remote.Descriptor) (v1.Image, error) {
	if !found.MediaType.IsIndex() {
		return found.Image()
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, err
	}
	all, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, one := range all.Manifests {
		if one.Platform != nil && one.Platform.Architecture == architecture {
			return index.Image(one.Digest)
		}
	}
	return nil, errNoRelease("has no image for " + architecture)
}

// errLogin means that a login is not one.
var errLogin = errors.New("the pull secret's login for it cannot be read")
