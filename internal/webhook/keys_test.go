package webhook

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

const service = "oooi-webhook.oooi-system.svc"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func turned(t interface{ Fatal(...any) }, k keys, now time.Time, bundle string) keys {
	after, err := k.turned(service, now, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func TestACertificateIsForTheServiceAndForServing(t *testing.T) {
	g := NewWithT(t)
	p, err := newPair(service, noon)
	g.Expect(err).NotTo(HaveOccurred())
	leaf := p.parsed().Leaf
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM([]byte(p.cert))).To(BeTrue())
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: service, Roots: roots, CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaf.IsCA).To(BeFalse(), "its key could sign for other names")
	g.Expect(p.good("other.oooi-system.svc", noon)).To(BeFalse())
}

func TestKeysTurnByTheClock(t *testing.T) {
	g := NewWithT(t)
	first := turned(t, keys{}, noon, "")
	g.Expect(first.serving.good(service, noon)).To(BeTrue())
	g.Expect(turned(t, first, noon.Add(renewed-time.Second), first.trusted())).To(Equal(first), "nothing to do before its time")
	g.Expect(first.pause(noon)).To(Equal(renewed))

	at := noon.Add(renewed)
	both := turned(t, first, at, first.trusted())
	g.Expect(both.serving).To(Equal(first.serving), "nobody trusts the next one yet")
	g.Expect(both.trusted()).To(Equal(first.serving.cert + both.next.cert))
	g.Expect(both.pause(at)).To(Equal(settles))
	g.Expect(turned(t, both, at.Add(settles-time.Second), both.trusted())).To(Equal(both), "an API server that lags does not trust it yet")
	g.Expect(turned(t, both, at.Add(settles), first.trusted())).To(Equal(both), "the caBundle could not be written")
	g.Expect(both.pause(at.Add(settles))).To(BeZero(), "the caBundle's change brings it back, not the clock")

	second := turned(t, both, at.Add(settles), both.trusted())
	g.Expect(second.serving).To(Equal(both.next))
	g.Expect(second.trusted()).To(Equal(first.serving.cert+second.serving.cert), "a replica that lags still serves the first one")

	third := turned(t, second, second.serving.made().Add(renewed), second.trusted())
	g.Expect(third.trusted()).To(Equal(second.serving.cert + third.next.cert))
}

func TestKeysThatNobodyBelievesAreMadeAnew(t *testing.T) {
	first := turned(t, keys{}, noon, "")
	for name, c := range map[string]struct {
		keys
		now time.Time
	}{
		"expired":           {first, noon.Add(lasts)},
		"not yet valid":     {first, noon.Add(-2 * skew)},
		"of another name":   {keys{serving: of(t, "other.svc")}, noon},
		"another's key":     {keys{serving: pair{first.serving.cert, of(t, service).key}}, noon},
		"more after it":     {keys{serving: pair{first.serving.cert + "-----BEGIN CERTIFICATE-----", first.serving.key}}, noon},
		"not a certificate": {keys{serving: pair{"-----BEGIN CERTIFICATE-----", first.serving.key}}, noon},
	} {
		t.Run(name, func(t *testing.T) {
			g, after := NewWithT(t), turned(t, c.keys, c.now, "")
			g.Expect(after.serving.good(service, c.now)).To(BeTrue())
			g.Expect(after.trusted()).To(Equal(after.serving.cert))
			g.Expect(after.serving).NotTo(Equal(c.serving))
		})
	}
}

func TestANextPairThatIsNoneIsDropped(t *testing.T) {
	g, first := NewWithT(t), turned(t, keys{}, noon, "")
	g.Expect(turned(t, keys{serving: first.serving, next: pair{"x", "y"}}, noon, "")).To(Equal(first))
}

func of(t *testing.T, name string) pair {
	t.Helper()
	p, err := newPair(name, noon)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever somebody writes into the Secret, the keys read from it serve, and the API server can parse the caBundle.
func FuzzKeysInASecret(f *testing.F) {
	good, err := keys{}.turned(service, noon, "")
	if err != nil {
		f.Fatal(err)
	}
	p := good.serving
	f.Add(p.cert, p.key, p.cert, p.key, p.cert)
	f.Add("", "", "", "", "")
	f.Add(p.cert, p.key, "", "", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")
	f.Add(p.cert+p.cert+"-----BEGIN", p.key, p.cert+"x", p.key, p.cert+"x")
	f.Fuzz(func(t *testing.T, cert, key, nextCert, nextKey, previous string) {
		s := &corev1.Secret{Data: map[string][]byte{
			fieldServing: []byte(cert), fieldServingKey: []byte(key), fieldNext: []byte(nextCert), fieldNextKey: []byte(nextKey), fieldPrevious: []byte(previous),
		}}
		after := turned(t, keysIn(s), noon, "")
		if !after.serving.good(service, noon) {
			t.Fatal("what is served is not good")
		}
		readable(t, after.trusted())
		if again := turned(t, keysIn(&corev1.Secret{Data: after.data()}), noon, ""); again != after {
			t.Fatal("what was stored is not what is read")
		}
	})
}

// readable parses a bundle as crypto/x509's AppendCertsFromPEM does, but strictly.
func readable(t *testing.T, bundle string) {
	t.Helper()
	for rest := []byte(bundle); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("after the last certificate there is %q", rest)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Fatal(err)
		}
	}
}

// Replicas lag by one write, the API server by less than settles, and the caBundle may be unwritable for a while: what is served is trusted
// throughout.
func TestWhatIsServedIsAlwaysTrusted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		stored := turned(t, keys{}, now, "")
		replica, bundle := stored.serving, stored.trusted()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "the replica catches up") {
				replica = stored.serving
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Minute, settles, 24 * time.Hour, renewed}).Draw(t, "time that passes"))
			if before := stored.serving; replica == before { // a replica lags by one write at most
				stored = turned(t, stored, now, bundle)
				if !before.good(service, now) { // nobody trusted it any more: both start afresh
					replica, bundle = stored.serving, stored.trusted()
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "the caBundle can be written") > 0 {
				bundle = stored.trusted()
			}
			for who, cert := range map[string]string{"the leader": stored.serving.cert, "a replica": replica.cert} {
				if !strings.Contains(bundle, cert) {
					t.Fatalf("%s serves what the API server does not trust", who)
				}
			}
		}
	})
}
