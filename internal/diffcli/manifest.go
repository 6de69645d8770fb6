package diffcli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/yamldoc"
)

// Manifest is an object as a file has it.
type Manifest struct {
	*unstructured.Unstructured
	File string
}

// Manifests reads the objects of files, of the files in directories, and of standard input ("-"), as kubectl apply -f does.
func Manifests(stdin io.Reader, names []string) (all []Manifest, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if files, err = within(name); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			text, err := contents(stdin, file)
			if err != nil {
				return nil, err
			}
			objects, err := documents(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, o := range objects {
				all = append(all, Manifest{o, file})
			}
		}
	}
	if len(all) == 0 { // as of a pipe whose first command failed
		return nil, fmt.Errorf("%s: there is no object in it: it is empty, or has comments alone", strings.Join(names, ", "))
	}
	return all, nil
}

func within(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		return nil, fmt.Errorf("%s has no *.yaml, *.yml or *.json", dir)
	}
	return files, err
}

func contents(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

func documents(text []byte) (all []*unstructured.Unstructured, err error) {
	err = yamldoc.Each(text, func(number int, doc []byte) error {
		var text any
		if err := yaml.UnmarshalStrict(doc, &text); err != nil {
			return fmt.Errorf("document %d: %w", number, yamldoc.NotYAML(doc, err))
		}
		object, _ := text.(map[string]any)
		u := &unstructured.Unstructured{Object: object}
		switch {
		case text == nil: // comments alone
		case u.GetKind() == "" || u.GetAPIVersion() == "":
			return fmt.Errorf("document %d is no Kubernetes object: it must start with apiVersion and kind", number)
		case u.IsList():
			err := u.EachListItem(func(o runtime.Object) error {
				all = append(all, o.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return fmt.Errorf("document %d: %w", number, err)
			}
		default:
			all = append(all, u)
		}
		return nil
	})
	return all, err
}
