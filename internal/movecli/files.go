package movecli

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Files writes what is carried to a directory, in the order in which it is applied, and returns the files.
func (m *Move) Files(dir string) (all []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var leases []client.Object
	for i := range m.Leases {
		leases = append(leases, &m.Leases[i])
	}
	for _, f := range []struct {
		name    string
		objects []client.Object
	}{{"1-network.yaml", m.networks()}, {"2-infra.yaml", []client.Object{m.Infra}}, {"3-leases.yaml", leases}} {
		var text []byte
		for _, o := range f.objects {
			document, err := manifest(o)
			if err != nil {
				return nil, err
			}
			text = append(append(text, "---\n"...), document...)
		}
		if len(f.objects) == 0 {
			continue
		}
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		all = append(all, path)
	}
	return all, nil
}

func (m *Move) networks() []client.Object {
	if m.Network == nil {
		return nil
	}
	return []client.Object{m.Network}
}

// manifest is an object as YAML, without what is no part of it yet.
func manifest(o client.Object) ([]byte, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", o.GetName(), err)
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if metadata, is := fields["metadata"].(map[string]any); is {
		delete(metadata, "creationTimestamp")
	}
	return yaml.Marshal(fields)
}
