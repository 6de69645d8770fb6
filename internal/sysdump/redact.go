package sysdump

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// secretKey is the name of a field whose text may be a secret: cloud-init's user data, passwords, tokens. References are objects, or names.
var secretKey = regexp.MustCompile(`(?i)(userdata|networkdata|passw(or)?d|passphrase|token|privatekey|secretkey|credentials?$|apikey)`)

// mayBeName is the name of a field that has a Secret's name (DPUCluster, DPUHCPBridge), or what such a Secret holds.
var mayBeName = regexp.MustCompile(`(?i)(pullsecret|kubeconfig)$`)

// secretText is what a secret looks like in any text, with what replaces it.
var secretText = []struct {
	looks *regexp.Regexp
	now   string
}{
	// A private key, whose end may have been cut off.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s\\]*)`), "REDACTED"},
	// The same, and JSON, in base64: kubeconfigs' keys, pull secrets, and tokens of Kubernetes (RFC 7519).
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`), "REDACTED"},
	{regexp.MustCompile(`eyJ[A-Za-z0-9+/_=.-]{16,}`), "REDACTED"},
	// User and password in a URL.
	{regexp.MustCompile(`://[^/\s:@"']+:[^/\s@"']+@`), "://REDACTED@"},
	// Hashes of passwords (crypt(5)), and OpenShift's tokens.
	{regexp.MustCompile(`\$[0-9a-z]{1,2}\$[^\s"']{8,}`), "REDACTED"},
	{regexp.MustCompile(`sha256~[A-Za-z0-9_-]{20,}`), "REDACTED"},
	// A login of a registry, and what is called a secret, in quotes (which JSON in JSON escapes) or without.
	{regexp.MustCompile(`(?i)(\\?"auth\\?"\s*:\s*\\?")(?:[^"\\]|\\[^"])+`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(` + words + `\\?["']?\s*[:=]\s*\\?")(?:[^"\\]|\\[^"])+`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(` + words + `["']?\s*[:=]\s*')[^']+`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(` + words + `\s*[:=]\s*)[^\s"'\\{\[]{6,}`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(--?token[ =])\S+`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(Bearer\s+|Authorization:\s*Basic\s+)[A-Za-z0-9+/._~=-]{8,}`), "${1}REDACTED"},
	// A bootstrap token of Kubernetes; names of Events look alike behind their dash.
	{regexp.MustCompile(`(^|[^\w-])[a-z0-9]{6}\.[a-z0-9]{16}\b`), "${1}REDACTED"},
}

const words = `(?:client-key-data|token|passw(?:or)?d(?:hash)?|passphrase|psk|secret|client_secret|secret_access_key)`

// redactText takes out of a text what looks like a secret.
func redactText(text string) string {
	for _, secret := range secretText {
		text = secret.looks.ReplaceAllString(text, secret.now)
	}
	return text
}

// redactObject takes out of an object what may be a secret, and what is repetition: managedFields and what kubectl applied last.
func redactObject(object map[string]any) {
	if meta, is := object["metadata"].(map[string]any); is {
		delete(meta, "managedFields")
		if annotations, is := meta["annotations"].(map[string]any); is {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	redactFields(object)
}

func redactFields(object map[string]any) {
	if name, is := object["name"].(string); is && secretKey.MatchString(name) { // an environment variable
		if value, is := object["value"].(string); is {
			object["value"] = withoutText(value)
		}
	}
	for key, value := range object {
		text, is := value.(string)
		switch {
		case is && secretKey.MatchString(key) && !strings.HasSuffix(key, "Name"), is && mayBeName.MatchString(key) && len(validation.IsDNS1123Subdomain(text)) > 0:
			object[key] = withoutText(text)
		default:
			object[key] = redacted(value)
		}
	}
}

func withoutText(text string) string { return fmt.Sprintf("REDACTED, %d octets", len(text)) }

func redacted(value any) any {
	switch v := value.(type) {
	case string:
		return redactText(v)
	case map[string]any:
		redactFields(v)
	case []any:
		for i := range v {
			v[i] = redacted(v[i])
		}
	}
	return value
}
