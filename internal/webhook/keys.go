package webhook

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// settles is how long API servers get to learn of the next certificate before it is served. Their caches follow within seconds; one that is
// cut off for longer reaches no webhook either.
const settles = 5 * time.Minute

// keys are what the Secret holds. A certificate passes through three places, so that API servers and replicas that lag already trust, and
// still trust, whatever is served:
//
//	next      ──── settled, and trusted ───▶  serving  ──── next is served ───▶  previous  ──── another next ───▶  gone
//	trusted                                   trusted                            trusted
type keys struct {
	next, serving pair
	previous      string // a certificate; its key is gone
	// path is where reviews are judged. Only readers of the ValidatingWebhookConfiguration know it, and no tenant is one. An API server
	// shows no certificate that would tell it from a pod (docs/adr/0006-admission-stops-nobody.md).
	path string
}

// path matches one that nobody guesses.
var path = regexp.MustCompile("^" + Path + "/[a-z2-7]{26}$")

// newPath is in lower case, as segments of a path must be (apiserver, pkg/util/webhook/validation.go).
func newPath() string { return Path + "/" + strings.ToLower(rand.Text()) }

// The Secret's fields; the first two are those of type kubernetes.io/tls.
const (
	fieldServing, fieldServingKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	fieldNext, fieldNextKey       = "next.crt", "next.key"
	fieldPrevious                 = "previous.crt"
	fieldPath                     = "path"
	fieldTrusted                  = "ca.crt" // the caBundle for scrapers, under cert-manager's name for it
)

// keysIn reads the keys of a Secret, which anybody may have edited.
func keysIn(s *corev1.Secret) keys {
	if s == nil {
		return keys{}
	}
	k := keys{
		serving: pair{string(s.Data[fieldServing]), string(s.Data[fieldServingKey])}, next: pair{string(s.Data[fieldNext]), string(s.Data[fieldNextKey])},
		previous: string(s.Data[fieldPrevious]), path: string(s.Data[fieldPath]),
	}
	if !path.MatchString(k.path) {
		k.path = ""
	}
	if !isCertificate(k.previous) { // one unreadable certificate spoils the whole caBundle
		k.previous = ""
	}
	return k
}

func (k keys) data() map[string][]byte {
	data := map[string][]byte{}
	for field, text := range map[string]string{
		fieldServing: k.serving.cert, fieldServingKey: k.serving.key, fieldNext: k.next.cert, fieldNextKey: k.next.key, fieldPrevious: k.previous,
		fieldPath: k.path, fieldTrusted: k.trusted(),
	} {
		if text != "" {
			data[field] = []byte(text)
		}
	}
	return data
}

// trusted is the caBundle.
func (k keys) trusted() string { return k.previous + k.serving.cert + k.next.cert }

// turned returns the keys as they should be now, given the bundle that API servers have. It takes one step at a time.
func (k keys) turned(name string, now time.Time, bundle string) (keys, error) {
	switch {
	case !k.serving.good(name, now): // nobody trusts it: nothing is lost
		fresh, err := newPair(name, now)
		return keys{serving: fresh}, err
	case k.next.good(name, now):
		if now.Before(k.next.made().Add(settles)) || !strings.Contains(bundle, k.next.cert) {
			return k, nil
		}
		return keys{serving: k.next, previous: k.serving.cert}, nil
	case now.Before(k.serving.made().Add(renewed)):
		return keys{serving: k.serving, previous: k.previous}, nil
	}
	return k.renewed(name, now)
}

// renewed returns the keys with a new next pair.
func (k keys) renewed(name string, now time.Time) (keys, error) {
	next, err := newPair(name, now)
	return keys{serving: k.serving, next: next}, err
}

// pause is how long there is nothing to do unless an event comes. A next pair that has settled waits for its caBundle, which is watched.
func (k keys) pause(now time.Time) time.Duration {
	if k.next.parsed() != nil {
		return max(k.next.made().Add(settles).Sub(now), 0)
	}
	return max(k.serving.made().Add(renewed).Sub(now), time.Second)
}
