package ignition

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// follower downloads one NodePool's ignition of one hash.
type follower struct {
	visits.Session
	downloads *Downloads
	want      bridge.Download

	version string    // of the token's Secret that the last download used; empty to download anew
	begun   time.Time // when that download began

	mu    sync.Mutex
	state bridge.Payload
}

func (f *follower) sees() bridge.Payload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// run looks regularly, and sooner after a failure.
func (f *follower) run(ctx context.Context) {
	for tries := 0; ctx.Err() == nil; {
		pause := f.downloads.lookEvery
		failed := f.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed != nil {
			f.version = ""
			f.fails(failed)
			pause = pace.Backoff(tries)
			tries++
		} else {
			tries = 0
		}
		pace.Pause(ctx, pause)
	}
}

// look downloads the ignition, unless the last download used the same token and is recent.
func (f *follower) look(ctx context.Context) *failure {
	token, failed := f.secret(ctx, f.want.Token)
	if failed != nil {
		return failed
	}
	if token.ResourceVersion == f.version && time.Since(f.begun) < f.downloads.refreshEvery {
		return nil
	}
	if of := token.Annotations[endpoint.TokenNodePool]; of != f.want.NodePool.String() {
		return &failure{"IgnitionTokenRefused", fmt.Sprintf("Secret %s has a token for the ignition of NodePool %q, not of %s, and it is not used: see that Secret, unless HyperShift is replacing it", f.want.Token, of, f.want.NodePool)}
	}
	if len(token.Data[endpoint.TokenKey]) == 0 {
		return waiting("Secret %s has no token yet", f.want.Token)
	}
	ca, failed := f.secret(ctx, f.want.CA)
	if failed != nil {
		return failed
	}
	f.version, f.begun = token.ResourceVersion, time.Now()
	content, failed := f.download(ctx, ca.Data[corev1.TLSCertKey], token.Data[endpoint.TokenKey])
	if failed == nil {
		f.has(content, string(token.Data[endpoint.TokenRelease]))
	}
	return failed
}

// secret reads a Secret of the control plane.
func (f *follower) secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, *failure) {
	s, err := f.downloads.secrets.Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, waiting("HyperShift has not created Secret %s yet", key)
	case apierrors.IsForbidden(err):
		denied := bridge.Denied("", key.Namespace)
		return nil, &failure{denied.Reason, denied.Message}
	case err != nil:
		return nil, waiting("Secret %s cannot be read: %v", key, err)
	}
	return s, nil
}

// download takes its turn.
func (f *follower) download(ctx context.Context, ca, token []byte) ([]byte, *failure) {
	select {
	case f.downloads.turns <- struct{}{}:
		defer func() { <-f.downloads.turns }()
	case <-ctx.Done():
		return nil, waiting("the operator ends")
	}
	return fetch(ctx, f.downloads.Dial, f.want, ca, token)
}

// has keeps content, and tells if it is new.
func (f *follower) has(content []byte, release string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Reason == "" && f.state.Release == release && bytes.Equal(f.state.Content, content) {
		return
	}
	f.state = bridge.Payload{Content: content, Release: release}
	pace.Poke(f.News)
}

// fails keeps why a download failed, beside older content, and tells if that is new: one reason has several messages.
func (f *follower) fails(why *failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Reason != why.Reason || f.state.Message != why.Message {
		f.state.Reason, f.state.Message = why.Reason, why.Message
		pace.Poke(f.News)
	}
}
