package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// jobs is how many layers are copied at a time. Each takes a few buffers of memory, whatever its size: what is read is written at once.
const jobs = 2

// cache copies what a look-up has found into the cluster's own registry, and answers with its name there. While the registry of the image does
// not answer, a copy that is there serves.
func (l *Lookups) cache(ctx context.Context, want bridge.Lookup, version string, from bridge.Place, found bridge.Answer, tells func(bridge.Answer)) bridge.Answer {
	down := found.Reason == bridge.RegistryUnreachable
	if found.Reason != "" && !down {
		return found
	}
	token, err := l.Token(ctx, want.Cache.Account)
	if err != nil {
		return noToken(want, err)
	}
	to := pushed(want, version, token)
	if down {
		if _, err := l.at(ctx, want, to, ":"+version, exists); err != nil {
			return found
		}
		return l.pulled(ctx, want, version)
	}
	select {
	case <-ctx.Done():
		return bridge.Answer{}
	case l.copying <- struct{}{}:
	}
	defer func() { <-l.copying }()
	if err := l.copy(ctx, want, version, from, to, tells); err != nil {
		_, text := why(err)
		return bridge.Answer{Reason: bridge.CacheFailed, Message: fmt.Sprintf("copying %s:%s to %s: %s%s", from.Repository, version, want.Cache.Pushed(version), where(err), text)}
	}
	return l.pulled(ctx, want, version)
}

// awaitLoss waits until a copy is not there any more. While its registry does not answer, or gives no token, that is not known.
func (l *Lookups) awaitLoss(ctx context.Context, want bridge.Lookup, version string) {
	for {
		pace.Pause(ctx, l.Recheck)
		if ctx.Err() != nil {
			return
		}
		token, err := l.Token(ctx, want.Cache.Account)
		if err != nil {
			continue
		}
		if _, err := l.at(ctx, want, pushed(want, version, token), ":"+version, exists); err != nil {
			if reason, _ := why(err); reason == bridge.ImageNotFound {
				return
			}
		}
	}
}

// pushed is where a copy is put.
func pushed(want bridge.Lookup, version, token string) bridge.Place {
	to := want.Cache.Push
	to.Repository, to.Login = imageless(want.Cache.Pushed(version), version), asLogin(token)
	return to
}

// pulled says whether DPUs get the copy, by their address and login. Only a refusal counts: the way there is theirs, not the manager's.
func (l *Lookups) pulled(ctx context.Context, want bridge.Lookup, version string) bridge.Answer {
	image := want.Cache.Pulled(version)
	at := want.Cache.Pull
	at.Repository = imageless(image, version)
	if _, err := l.at(ctx, want, at, ":"+version, exists); err != nil {
		if reason, text := why(err); reason == bridge.RegistryUnauthorized {
			return bridge.Answer{Reason: bridge.CacheNotPulled, Message: fmt.Sprintf("%s: %s", image, text)}
		}
	}
	return bridge.Answer{Image: image}
}

func imageless(image, version string) string { return image[:len(image)-len(version)-1] }

// asLogin is a token as OpenShift's registry takes it, with any user's name (openshift/image-registry, pkg/dockerregistry/server/token.go).
func asLogin(token string) string {
	login, _ := json.Marshal(authn.AuthConfig{Username: "oooi", Password: token}) // it never fails
	return string(login)
}

func noToken(want bridge.Lookup, err error) bridge.Answer {
	of := want.Cache.Account
	because := "the API server gives no token of ServiceAccount " + of.String()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		because = fmt.Sprintf("ServiceAccount %s does not exist, or the operator may have no token of it: kubectl kustomize config/components/image-cache | sed s/oooi-images/%s/ | kubectl apply -n %[2]s -f -", of, of.Namespace)
	}
	return bridge.Answer{Reason: bridge.CacheFailed, Message: because}
}

// copy copies an image, unless it is there. Layers that are there are not copied again, and the manifest comes last: a copy that is interrupted
// goes on with the layer at which it was, and until it is whole nobody sees it.
func (l *Lookups) copy(ctx context.Context, want bridge.Lookup, version string, from, to bridge.Place, tells func(bridge.Answer)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled := time.AfterFunc(l.Stall, func() { stop(errStalled) })
	defer stalled.Stop()
	err := l.write(ctx, want, version, from, to, func(done, of int64) {
		stalled.Reset(l.Stall)
		tells(bridge.Answer{Reason: bridge.Caching, Message: fmt.Sprintf("%s:%s is being copied to %s: %s", from.Repository, version, want.Cache.Pushed(version), share(done, of))})
	})
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// write has most of copy.
func (l *Lookups) write(ctx context.Context, want bridge.Lookup, version string, from, to bridge.Place, progress func(done, of int64)) error {
	var read tally
	source, reading, done, err := l.reach(ctx, want, from, ":"+version, guarded{most: mostOfLayer, took: read.add})
	if err != nil {
		return err
	}
	defer done()
	target, writing, done, err := l.reach(ctx, want, to, ":"+version, guarded{most: mostOfBody})
	if err != nil {
		return err
	}
	defer done()
	image, err := imageAt(source, reading...)
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if manifest.Config.Size > mostOfBody { // it is the one part that is read into memory
		return errNoRelease("has a config that is too large")
	}
	if is, err := remote.Head(target, writing...); err == nil {
		if digest, err := image.Digest(); err == nil && is.Digest == digest {
			return nil
		}
	}
	read.begin(octets(manifest), progress)
	defer read.end()
	return remote.Write(target, image, append(writing, remote.WithJobs(jobs))...)
}

// tally adds up what a copy reads. remote.WithProgress would do so, too, but sends on a channel that it closes when an upload fails, and
// http.RoundTripper may read the body of a request after it has returned. Nobody is told then.
type tally struct {
	mu       sync.Mutex
	done, of int64
	tell     func(done, of int64) // nil: the copy has not begun, or has ended
}

func (t *tally) begin(of int64, tell func(done, of int64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.tell = of, tell
}

func (t *tally) end() { t.begin(0, nil) }

func (t *tally) add(octets int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tell != nil && octets > 0 {
		t.done += int64(octets)
		t.tell(t.done, t.of)
	}
}

// octets are those of all that is copied but the manifest.
func octets(of *v1.Manifest) int64 {
	all := of.Config.Size
	for _, layer := range of.Layers {
		all += layer.Size
	}
	return all
}

// mostOfLayer is the size up to which a layer is copied: those of an operating system take some hundred MiB.
const mostOfLayer = 64 << 30

// errStalled means that a copy has come to a standstill.
var errStalled = errors.New("nothing was transferred for a while")

// share says how much is copied, in steps of ten percent: each step is a write to the bridge's status.
func share(done, of int64) string {
	return fmt.Sprintf("%d%% of %d MiB", min(done, of)*10/max(of, 1)*10, of>>20)
}

// where names the registry that has refused, or was not reached.
func where(err error) string {
	var (
		said  *transport.Error
		from  brokenOff
		asked *url.Error
	)
	switch {
	case errors.As(err, &said) && said.Request != nil:
		return said.Request.URL.Host + ": "
	case errors.As(err, &from): // before asked, which may be who was sent it
		return from.host + ": "
	case errors.As(err, &asked):
		if at, err := url.Parse(asked.URL); err == nil {
			return at.Host + ": "
		}
	}
	return ""
}
