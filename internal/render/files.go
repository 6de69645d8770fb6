package render

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Files reads the objects of files, of directories as kubectl does (not of those below), and of standard input as "-".
func Files(stdin io.Reader, names []string) (Objects, error) {
	var all Objects
	givenIn := map[string]string{}
	for _, name := range names {
		files, err := within(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := readFile(stdin, file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if err := givenOnce(givenIn, file, objects); err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// within lists the files of a directory; a file is its own list.
func within(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no *.yaml, *.yml or *.json", name)
	}
	return files, nil
}

func readFile(stdin io.Reader, name string) (Objects, error) {
	if name == "-" {
		return Read(stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(file)
}

// givenOnce refuses an object that a file before, or this one, has already: which of them a cluster would have cannot be told.
func givenOnce(givenIn map[string]string, file string, objects Objects) error {
	for _, object := range objects {
		o, ok := object.(metav1.Object)
		if !ok {
			continue
		}
		id := fmt.Sprintf("%s %s/%s", object.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
		if earlier, given := givenIn[id]; given {
			return fmt.Errorf("%s: %s is given twice, first in %s; give it once", file, id, earlier)
		}
		givenIn[id] = file
	}
	return nil
}
