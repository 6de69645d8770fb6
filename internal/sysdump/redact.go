package sysdump

import (
	"fmt"
	"regexp"
	"strings"
)

// secretKey is the name of a field whose text may be a secret: cloud-init's user data, passwords, tokens. A reference to a Secret is a name, and
// none.
var secretKey = regexp.MustCompile(`(?i)(userdata|networkdata|password|passwd|token|privatekey|secretkey|pullsecret$|credentials?$|kubeconfig$|apikey)`)

// secretText is what a secret looks like in any text: private keys, tokens of Kubernetes, logins of registries, keys of kubeconfigs, and
// authorization headers.
var secretText = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*`),
	regexp.MustCompile(`(?i)(\\?"auth\\?"\s*:\s*\\?")[^"\\]+`),
	regexp.MustCompile(`(?i)((?:client-key-data|token|password)\\?"?\s*[:=]\s*\\?"?)[^\s"\\,}]{4,}`),
	regexp.MustCompile(`(?i)((?:Bearer|Basic)\s+)[A-Za-z0-9+/._~=-]{8,}`),
	regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), // a bootstrap token
}

// redactText takes out of a text what looks like a secret.
func redactText(text string) string {
	for _, secret := range secretText {
		text = secret.ReplaceAllString(text, "${1}REDACTED")
	}
	return text
}

// redactObject takes out of an object what may be a secret, and what is repetition: managedFields and what kubectl applied last.
func redactObject(object map[string]any) {
	if meta, is := object["metadata"].(map[string]any); is {
		delete(meta, "managedFields")
		if annotations, is := meta["annotations"].(map[string]any); is {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	redactFields(object)
}

func redactFields(object map[string]any) {
	for key, value := range object {
		if text, is := value.(string); is && secretKey.MatchString(key) && !strings.HasSuffix(key, "Name") {
			object[key] = fmt.Sprintf("REDACTED, %d octets", len(text))
			continue
		}
		object[key] = redacted(value)
	}
}

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
