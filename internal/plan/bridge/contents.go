package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Keys in the user's Secrets, as HyperShift reads them (HostedCluster.spec.sshKey, .pullSecret).
const (
	SSHKeyKey     = "id_rsa.pub"
	PullSecretKey = corev1.DockerConfigJsonKey
)

// SSHKeyProblem ends a sentence about what is wrong with the Secret of spec.sshKey, without quoting it; empty if nothing is. A private key
// with the public one would be copied to every DPU.
func SSHKeyProblem(s *corev1.Secret) string {
	lines := s.Data[SSHKeyKey]
	switch {
	case len(bytes.TrimSpace(lines)) == 0:
		return fmt.Sprintf("has nothing in key %s; put the public key there, e.g. with: oooi bridge create --ssh-key FILE", SSHKeyKey)
	case bytes.Contains(lines, []byte("PRIVATE KEY-----")):
		return fmt.Sprintf("has a private key in %s; put the public one there, from the file that ends in .pub", SSHKeyKey)
	}
	for line := range bytes.Lines(lines) {
		if isAuthorizedKey(line) {
			return ""
		}
	}
	return fmt.Sprintf("has no public SSH key in %s; write one per line, as in the file that ends in .pub, e.g. ssh-ed25519 AAAA… core", SSHKeyKey)
}

// isAuthorizedKey looks for a key type with a key of that type after it (sshd(8), AUTHORIZED_KEYS FILE FORMAT): options may precede them,
// and a comment may follow. The key contains its type (RFC 4253, section 6.6).
func isAuthorizedKey(line []byte) bool {
	if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("#")) {
		return false
	}
	words := bytes.Fields(line)
	for i := range len(words) - 1 {
		key := make([]byte, base64.StdEncoding.DecodedLen(len(words[i+1])))
		n, err := base64.StdEncoding.Decode(key, words[i+1])
		if err == nil && bytes.Equal(typeOf(key[:n]), words[i]) {
			return true
		}
	}
	return false
}

// typeOf is the first string of a key, which must not be all of it.
func typeOf(key []byte) []byte {
	if len(key) < 4 {
		return nil
	}
	length, rest := uint64(binary.BigEndian.Uint32(key)), key[4:]
	if length == 0 || length >= uint64(len(rest)) {
		return nil
	}
	return rest[:length]
}

// PullSecretProblem is the same for the Secret of spec.pullSecret.
func PullSecretProblem(s *corev1.Secret) string {
	text := s.Data[PullSecretKey]
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Sprintf("has nothing in key %s; put the pull secret's JSON there, e.g. with: oooi bridge create --pull-secret FILE", PullSecretKey)
	}
	var config struct {
		Auths map[string]map[string]any `json:"auths"`
	}
	if json.Unmarshal(text, &config) != nil { // the error would quote the text
		return fmt.Sprintf(`has no JSON of a pull secret in %s; it looks like {"auths": {"quay.io": {"auth": "…"}}}`, PullSecretKey)
	}
	if len(config.Auths) == 0 {
		return fmt.Sprintf(`has no registry under "auths" in %s; it looks like {"auths": {"quay.io": {"auth": "…"}}}`, PullSecretKey)
	}
	return ""
}
