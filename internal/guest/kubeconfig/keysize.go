package kubeconfig

import (
	"crypto/rsa"
	"encoding/asn1"
	"encoding/pem"
	"strings"
)

// The time to parse a key grows with the cube of its size, cannot be interrupted, and is spent before the key is known to be valid:
// crypto/x509 computes qInv of p and q before it checks that p times q is the modulus (go1.26 crypto/rsa, Precompute). A private key of
// 16 KiB takes 47 s.
const (
	// largestKey in bytes of DER: PKCS #8 of an RSA key of 4096 bits has 2,400.
	largestKey = 3 << 10
	// largestModulus in bytes, which is also the size of the private exponent: 4096 bits, and a leading zero.
	largestModulus = 513
	// largestPrime is half of that: with primes as large as the modulus may be, parsing takes 200 ms.
	largestPrime = 257
	// largestPublic in bits of an RSA modulus, the largest that crypto/tls accepts of a server (go1.26 handshake_client.go).
	largestPublic = 8192
)

// boundedKey says whether the private keys in a PEM text cost little to parse.
func boundedKey(text []byte) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") && (len(block.Bytes) > largestKey || !boundedIntegers(block.Bytes)) {
			return false
		}
	}
	return true
}

// boundedIntegers checks the integers in DER and in its octet strings: PKCS #8 has PKCS #1 in one.
func boundedIntegers(der []byte) bool {
	for at := 0; len(der) > 0; at++ {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(der, &v)
		if err != nil {
			return true // no DER: a parser finds no integer here either
		}
		switch {
		case v.Class == asn1.ClassUniversal && v.Tag == asn1.TagInteger && len(v.Bytes) > largestAt(at):
			return false
		case (v.IsCompound || v.Class == asn1.ClassUniversal && v.Tag == asn1.TagOctetString) && !boundedIntegers(v.Bytes):
			return false
		}
		der = rest
	}
	return true
}

// largestAt is how large the integer at a position of PKCS #1 may be: first version, modulus, public and private exponent, then integers
// of a prime's size (RFC 8017 §A.1.2).
func largestAt(at int) int {
	if at == 1 || at == 3 {
		return largestModulus
	}
	return largestPrime
}

// boundedPublic says whether a signature by a key costs little to verify.
func boundedPublic(key any) bool {
	public, is := key.(*rsa.PublicKey)
	return !is || public.N.BitLen() <= largestPublic
}
