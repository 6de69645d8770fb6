// release makes what a release is besides the binary.
//
//	release bundle vN.N.N DIR [EXAMPLE.yaml…] < MANIFESTS   an OLM bundle of the rendered manifests
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cldmnky/oooi/hack/release/bundle"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) < 3 || args[0] != "bundle" {
		return errors.New("usage: release bundle vN.N.N DIR [EXAMPLE.yaml…] < MANIFESTS")
	}
	return makeBundle(args[1], args[2], args[3:])
}

func makeBundle(release, dir string, files []string) error {
	manifests, err := objects(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	var examples []*unstructured.Unstructured
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		one, err := objects(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		examples = append(examples, one...)
	}
	made, err := bundle.Of(release, manifests, examples)
	if err != nil {
		return err
	}
	if err := made.Write(dir); err != nil {
		return err
	}
	return bundle.Validate(dir)
}

// objects reads YAML documents.
func objects(from io.Reader) (all []*unstructured.Unstructured, err error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(bufio.NewReader(from), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if o.GetKind() != "" {
			all = append(all, o)
		}
	}
}
