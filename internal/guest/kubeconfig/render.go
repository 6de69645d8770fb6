package kubeconfig

import (
	"sigs.k8s.io/yaml"
)

// SecretKey is where HyperShift puts a kubeconfig in its Secret.
const SecretKey = "kubeconfig"

// Kubeconfig is a new kubeconfig with what we use of the original, and nothing else.
func (a Access) Kubeconfig() []byte {
	const name = "hosted-cluster"
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": given(map[string]any{"server": a.Server, "certificate-authority-data": a.CA})}},
		"users":    []any{map[string]any{"name": name, "user": given(map[string]any{"client-certificate-data": a.Certificate, "client-key-data": a.Key, "token": a.Token})}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	})
	if err != nil {
		panic(err) // strings and bytes are YAML
	}
	return text
}

// given are the fields that are not empty.
func given(fields map[string]any) map[string]any {
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			if v == "" {
				delete(fields, name)
			}
		case []byte:
			if len(v) == 0 {
				delete(fields, name)
			}
		}
	}
	return fields
}
