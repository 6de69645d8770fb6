package csr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
)

// leastRSA and mostRSA are the bounds of keys that kubelets and their tools make: smaller ones can be broken, and larger ones make each
// signature costlier.
const (
	leastRSA = 2048
	mostRSA  = 4096
)

func (f *form) hasUsualKey() (bool, string) {
	if f.parsed == nil {
		return false, "its key cannot be read: " + short(f.unread)
	}
	switch key := f.parsed.PublicKey.(type) {
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		return bits >= leastRSA && bits <= mostRSA, fmt.Sprintf("its key is of RSA with %d bits, from %d to %d are taken", bits, leastRSA, mostRSA)
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256() || key.Curve == elliptic.P384(), fmt.Sprintf("its key is of %s, P-256 and P-384 are taken", key.Curve.Params().Name)
	}
	return false, "its key is neither of RSA nor of P-256 or P-384"
}
