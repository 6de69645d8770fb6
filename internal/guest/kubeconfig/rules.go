package kubeconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"unicode/utf8"
)

// Refusal is why a kubeconfig is not used. It quotes nothing of the kubeconfig.
type Refusal struct {
	// Rule is the name of the rule that it breaks; stable.
	Rule string
	// Because ends the sentence "the kubeconfig is not used: ".
	Because string
}

// rule is a reason to refuse. Its sentence is a constant, so that it cannot reveal a secret.
type rule[T any] struct {
	name    string
	because string
	broken  func(T) bool
}

func firstBroken[T any](rules []rule[T], of T) *Refusal {
	for _, r := range rules {
		if r.broken(of) {
			return &Refusal{r.name, r.because}
		}
	}
	return nil
}

// largest is the size of the largest kubeconfig that we read. HyperShift's has some 10 KiB.
const largest = 64 << 10

// mostSeparators is how many separators of parts it may have; HyperShift's has twenty.
const mostSeparators = 1000

// mostOpened is how many nested lists and maps it may have. Deeper levels cost more, and 9,000 of them 40 ms; those of a real kubeconfig
// come with a separator or more each.
const mostOpened = mostSeparators

// opened counts what may begin a list, a map or its key inside a line, also in quotes, which only a parser can recognise.
func opened(text []byte) (n int) {
	for _, begins := range []string{"[", "{", "- ", "? "} {
		n += bytes.Count(text, []byte(begins))
	}
	return n
}

// separators counts commas and line breaks, of which YAML 1.1 has five (§5.4).
func separators(text []byte) (n int) {
	for _, separates := range []string{",", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(text, []byte(separates))
	}
	return n
}

// textRules are checked before anything parses the text.
var textRules = []rule[[]byte]{
	{"NotTooLarge", "it is larger than 64 KiB", func(text []byte) bool { return len(text) > largest }},
	// YAML may be UTF-16, in which the rules below would not find their characters.
	{"IsUTF8", "it is not UTF-8", func(text []byte) bool { return !utf8.Valid(text) }},
	// A long string with thousands of aliases becomes gigabytes; HyperShift writes neither character.
	{"NoAnchors", "it has the character & or *, which would let YAML repeat parts of itself", func(text []byte) bool { return bytes.ContainsAny(text, "&*") }},
	{"OneDocument", "it is more than one YAML document", func(text []byte) bool { return bytes.Contains(bytes.TrimPrefix(text, []byte("---")), []byte("\n---")) }},
	// Each part costs the YAML parser, and the JSON parser after it, some microseconds, and takes three octets only.
	{"FewParts", "it has more than 1000 commas and line breaks", func(text []byte) bool { return separators(text) > mostSeparators }},
	{"FewLevels", "it has more than 1000 brackets and signs that begin a list or a map", func(text []byte) bool { return opened(text) > mostOpened }},
}

// rules hold for every cluster and user of a kubeconfig, including those that its current context does not name.
var rules = []rule[*kubeconfig]{
	{"IsKubeconfig", "it is no Config of version v1", func(k *kubeconfig) bool { return k.Kind != "Config" || k.APIVersion != "v1" }},
	{"NoCommand", "a user has exec, which runs a command", anyUser(func(u user) bool { return u.Exec != nil })},
	{"NoAuthProvider", "a user has auth-provider", anyUser(func(u user) bool { return u.AuthProvider != nil })},
	{"NoImpersonation", "a user impersonates another (as, as-uid, as-groups, as-user-extra)", anyUser(func(u user) bool {
		return u.As != "" || u.AsUID != "" || len(u.AsGroups) > 0 || len(u.AsExtra) > 0
	})},
	{"NoPassword", "a user has a username and password", anyUser(func(u user) bool { return u.Username != "" || u.Password != "" })},
	{"NoUserFiles", "a user names a file (client-certificate, client-key, tokenFile); they must be inline", anyUser(func(u user) bool {
		return u.CertificateFile != "" || u.KeyFile != "" || u.TokenFile != ""
	})},
	{"NoCAFile", "a cluster names a file (certificate-authority); it must be inline", anyCluster(func(c cluster) bool { return c.CAFile != "" })},
	{"NoProxy", "a cluster has proxy-url", anyCluster(func(c cluster) bool { return c.ProxyURL != "" })},
	{"VerifiesTLS", "a cluster has insecure-skip-tls-verify", anyCluster(func(c cluster) bool { return c.SkipVerify })},
	{"VerifiesItsName", "a cluster has tls-server-name", anyCluster(func(c cluster) bool { return c.ServerName != "" })},
	{"ServerIsHTTPS", "a cluster's server is not https://HOST or https://HOST:PORT", anyCluster(func(c cluster) bool { return hostOf(c.Server) == "" })},
	{"ServerElsewhere", "a cluster's server is this machine itself, its link, or a cloud's metadata service", anyCluster(func(c cluster) bool { return isHere(hostOf(c.Server)) })},
	{"OneContext", "its current-context does not name exactly one context with one cluster and one user", func(k *kubeconfig) bool { return !k.chooses() }},
	{"CAGiven", "its certificate-authority-data is missing, or not wholly certificates with RSA keys of at most 8192 bits", func(k *kubeconfig) bool { c, _ := k.chosen(); return !areCertificates(c.CAData) }},
	{"CredentialsGiven", "its user has neither client-certificate-data with client-key-data nor a token", func(k *kubeconfig) bool {
		_, u := k.chosen()
		return (len(u.CertificateData) == 0) != (len(u.KeyData) == 0) || len(u.CertificateData) == 0 && u.Token == ""
	}},
	{"KeyNotTooLarge", "its client-key-data is larger than an RSA key of 4096 bits", func(k *kubeconfig) bool {
		_, u := k.chosen()
		return !boundedKey(u.KeyData)
	}},
	{"KeyFits", "its client-certificate-data and client-key-data are not one pair", func(k *kubeconfig) bool {
		_, u := k.chosen()
		_, err := tls.X509KeyPair(u.CertificateData, u.KeyData)
		return len(u.CertificateData) > 0 && (err != nil || !areCertificates(u.CertificateData))
	}},
	{"TokenIsOneWord", "its token is not one word of printable characters", func(k *kubeconfig) bool {
		_, u := k.chosen()
		return bytes.ContainsFunc([]byte(u.Token), func(r rune) bool { return r <= ' ' || r > '~' })
	}},
}

func anyUser(is func(user) bool) func(*kubeconfig) bool {
	return func(k *kubeconfig) bool {
		for _, u := range k.Users {
			if is(u.User) {
				return true
			}
		}
		return false
	}
}

func anyCluster(is func(cluster) bool) func(*kubeconfig) bool {
	return func(k *kubeconfig) bool {
		for _, c := range k.Clusters {
			if is(c.Cluster) {
				return true
			}
		}
		return false
	}
}

// areCertificates says whether a text is PEM of certificates and nothing else; x509.CertPool would ignore the rest.
func areCertificates(text []byte) bool {
	blocks, rest := certificates(text)
	return len(blocks) > 0 && len(bytes.TrimSpace(rest)) == 0 && !slices.ContainsFunc(blocks, func(b *pem.Block) bool {
		c, err := x509.ParseCertificate(b.Bytes)
		return b.Type != "CERTIFICATE" || err != nil || !boundedPublic(c.PublicKey)
	})
}

func certificates(text []byte) (blocks []*pem.Block, rest []byte) {
	for block, rest := pem.Decode(text); ; block, rest = pem.Decode(rest) {
		if block == nil {
			return blocks, rest
		}
		blocks = append(blocks, block)
	}
}
