// Package slowkey makes RSA keys that crypto/x509 takes seconds, or days, to refuse.
package slowkey

import (
	"encoding/asn1"
	"encoding/pem"
	"math/big"
)

// DER is PKCS #1 without qInv, which crypto/x509 computes from p and q of this many bits before it checks whether they are primes of n.
func DER(bits uint) []byte {
	p := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1))
	q := new(big.Int).Sub(p, big.NewInt(4))
	der, err := asn1.Marshal(struct {
		Version int
		N       *big.Int
		E       int
		D, P, Q *big.Int
	}{N: big.NewInt(35), E: 65537, D: big.NewInt(5), P: p, Q: q})
	if err != nil {
		panic(err)
	}
	return der
}

// PEM is DER as a kubeconfig has it; with 1<<20 bits it has 256 KiB.
func PEM(bits uint) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: DER(bits)})
}
