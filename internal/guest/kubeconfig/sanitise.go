// Package kubeconfig reads untrusted kubeconfigs: it returns what we use of one, or why we refuse it.
package kubeconfig

import (
	"context"

	"sigs.k8s.io/yaml"
)

// Access is all that we use of a kubeconfig. It names no file, no command and no proxy.
type Access struct {
	// Server is https://HOST or https://HOST:PORT.
	Server string
	// CA are certificates, as PEM.
	CA []byte
	// Certificate and Key are the client's, as PEM; both or neither.
	Certificate, Key []byte
	// Token is the client's; empty if it has none.
	Token string
}

// Sanitise reads an untrusted kubeconfig (operator-rules.md#kubeconfigs). client-go never gets one, because it would run commands that the
// kubeconfig names, or send a file of ours as a token.
func Sanitise(content []byte) (Access, *Refusal) {
	if refusal := firstBroken(textRules, content); refusal != nil {
		return Access{}, refusal
	}
	var k kubeconfig
	if err := yaml.UnmarshalStrict(content, &k); err != nil { // the error may quote a secret
		return Access{}, &Refusal{"OnlyKnownFields", "it is no YAML, or has a field twice, or one that kubeconfigs do not have"}
	}
	if refusal := firstBroken(rules, &k); refusal != nil {
		return Access{}, refusal
	}
	c, u := k.chosen()
	return Access{Server: c.Server, CA: c.CAData, Certificate: u.CertificateData, Key: u.KeyData, Token: u.Token}, nil
}

// sanitising is full while a kubeconfig is parsed. Nobody may wait for it with a lock held.
var sanitising = make(chan struct{}, 1)

// SanitiseInTurn is Sanitise, one call at a time, so that many kubeconfigs cost one core at most; the error is the context's.
func SanitiseInTurn(ctx context.Context, content []byte) (Access, *Refusal, error) {
	select {
	case <-ctx.Done():
		return Access{}, nil, ctx.Err()
	case sanitising <- struct{}{}:
	}
	defer func() { <-sanitising }()
	access, refusal := Sanitise(content)
	return access, refusal, nil
}
