package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/yamldoc"
)

// Files reads the objects of files, of directories with all below them, and of standard input ("-"). A directory may be the output of `oc
// adm must-gather`: a file there that cannot be parsed, and has none of the kinds that must not be missed, is skipped and noted.
func Files(stdin io.Reader, names []string) (all Objects, notes []string, err error) {
	r := reading{stdin: stdin, given: map[string]given{}}
	for _, name := range names {
		if err := r.take(name); err != nil {
			return nil, nil, err
		}
	}
	for _, file := range r.passedOver {
		notes = append(notes, "passed over: "+file)
	}
	all, assumed := r.objects.withNetworks()
	return all, append(notes, assumed...), nil
}

type reading struct {
	stdin      io.Reader
	objects    Objects
	given      map[string]given
	passedOver []string
}

// given is an object's index, and the file that it came from.
type given struct {
	index int
	file  string
}

func (r *reading) take(name string) error {
	if name != "-" {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return r.directory(name)
		}
	}
	text, err := r.text(name)
	if err != nil {
		return err
	}
	objects, err := documents(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.add(name, objects)
}

func (r *reading) text(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(r.stdin)
	}
	return ReadFile(name)
}

// ReadFile refuses a named pipe in a directory, which nobody may ever write to. What a shell gives as a file (/dev/stdin, /dev/fd/N) is read.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/") {
		return nil, fmt.Errorf("%s is a named pipe and no file: give a file, or what a program writes as standard input, with -", name)
	}
	return os.ReadFile(name)
}

// dumped says whether a directory is the output of `oc adm inspect`.
func dumped(dir string) bool {
	for _, mark := range []string{"namespaces", "cluster-scoped-resources"} {
		if info, err := os.Stat(filepath.Join(dir, mark)); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// hosted begins the name of the directory in which HyperShift's dump puts the objects of a hosted cluster (hypershift:
// cmd/cluster/core/dump.go). The names in it mean other objects than here.
const hosted = "hostedcluster-"

// mounted begins the names of the kubelet's directories in a mounted ConfigMap or Secret; links lead to the newest one's files.
const mounted = ".."

func (r *reading) directory(name string) error {
	files, root := 0, name+string(filepath.Separator) // the separator has a link followed
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			r.passedOver = append(r.passedOver, err.Error())
			return nil
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), hosted) && dumped(file):
			r.passedOver = append(r.passedOver, file+": it is of the hosted cluster itself")
			return fs.SkipDir
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), mounted):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))):
			return nil
		}
		files++
		return r.within(file)
	})
	if err == nil && files == 0 {
		return fmt.Errorf("%s holds no *.yaml, *.yml or *.json", name)
	}
	return err
}

// within reads a file of a directory. Of a dump's thousands most have no kind that planning reads, and are not parsed.
func (r *reading) within(file string) error {
	text, err := ofRegular(file)
	if err != nil {
		r.passedOver = append(r.passedOver, err.Error())
		return nil
	}
	if text = yamldoc.InUTF8(text); !speaksOf(text, known) {
		return nil
	}
	objects, err := documents(text)
	switch {
	case err != nil && decides(text) && (!errors.Is(err, errNoObject) || !ofOthers(text)):
		return fmt.Errorf("%s: %w", file, err)
	case err != nil:
		r.passedOver = append(r.passedOver, fmt.Sprintf("%s: %v", file, err))
		return nil
	}
	return r.add(file, objects)
}

// decides says whether a text has an object that must not be skipped.
func decides(text []byte) bool {
	return speaksOf(text, unmistakable) || bytes.Contains(text, []byte(hyperv1.GroupVersion.Group))
}

// ofRegular reads a regular file; a pipe in a directory would block.
func ofRegular(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no regular file", file)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// ofOthers says whether a text has its kinds only inside something else, as a kustomization's patches, Helm values and playbooks do.
func ofOthers(text []byte) bool {
	return !kindAtTop.Match(text) && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

var kindAtTop = regexp.MustCompile(`(?m)^["']?kind["']?\s*:`)

// kindWritten finds a kind however YAML lets it be written: quoted, with a tag or an anchor.
var kindWritten = regexp.MustCompile(`\bkind["']?\s*:\s*(?:[&!]\S*\s+)*["']?([A-Za-z]+)`)

// speaksOf says whether a text has an object, or a list, of one of these kinds.
func speaksOf(text []byte, of kinds) bool {
	for _, m := range kindWritten.FindAllSubmatch(text, -1) {
		name := string(m[1])
		if of.named(name) || of.named(strings.TrimSuffix(name, "List")) {
			return true
		}
	}
	return false
}

func (r *reading) add(file string, objects Objects) error {
	for _, object := range objects {
		o, ok := object.(metav1.Object)
		if !ok {
			continue
		}
		kind := object.GetObjectKind().GroupVersionKind().GroupKind() // OpenShift has two kinds named Network
		id := fmt.Sprintf("%s/%s", o.GetNamespace(), o.GetName())
		key := kind.String() + " " + id
		earlier, again := r.given[key]
		if !again {
			r.given[key] = given{len(r.objects), file}
			r.objects = append(r.objects, object)
			continue
		}
		newest, err := newer(r.objects[earlier.index].(metav1.Object), o)
		if err != nil {
			return fmt.Errorf("%s: %s %s is given twice, first in %s; give it once", file, kind.Kind, id, earlier.file)
		}
		if newest == o {
			r.objects[earlier.index] = object
		}
	}
	return nil
}

// newer is the later state of an object that was read from a cluster twice, as must-gather does. Of two that somebody wrote, nobody can
// tell which a cluster would have.
func newer(one, other metav1.Object) (metav1.Object, error) {
	if reflect.DeepEqual(one, other) && one.GetUID() != "" {
		return one, nil
	}
	first, err := strconv.ParseUint(one.GetResourceVersion(), 10, 64)
	second, otherErr := strconv.ParseUint(other.GetResourceVersion(), 10, 64)
	if err = errors.Join(err, otherErr); err != nil || one.GetUID() != other.GetUID() || one.GetUID() == "" {
		return nil, errors.Join(err, errors.New("not of one object"))
	}
	if second > first {
		return other, nil
	}
	return one, nil
}
