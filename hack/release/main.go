// release makes what a release is besides the binary.
//
//	release bundle vN.N.N DIR [EXAMPLE.yaml…] < MANIFESTS   an OLM bundle of the rendered manifests
//	release pack vN.N.N COMMIT SECONDS TOP DIR              the files of a release, of the binaries in DIR/linux-ARCH
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cldmnky/oooi/hack/release/bundle"
	"github.com/cldmnky/oooi/hack/release/pack"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 3 && args[0] == "bundle":
		return makeBundle(args[1], args[2], args[3:])
	case len(args) == 6 && args[0] == "pack":
		seconds, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil {
			return fmt.Errorf("SECONDS since 1970 of the commit: %w", err)
		}
		return pack.Release{Version: args[1], Commit: args[2], When: time.Unix(seconds, 0).UTC(), Top: args[4], Dir: args[5]}.Make()
	}
	return errors.New("usage: release bundle vN.N.N DIR [EXAMPLE.yaml…] < MANIFESTS, or release pack vN.N.N COMMIT SECONDS TOP DIR")
}

func makeBundle(release, dir string, files []string) error {
	manifests, err := objects(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	var examples []*unstructured.Unstructured
	for _, file := range files {
		f, err := os.Open(file) //nolint:gosec // who runs it names the files
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
