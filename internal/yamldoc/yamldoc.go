// Package yamldoc splits YAML into its documents.
package yamldoc

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Each gives each document of YAML, in UTF-8 or as PowerShell redirects it, to take, from number 1 on, until that fails. A document may be empty.
func Each(text []byte, take func(number int, doc []byte) error) error {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(InUTF8(text))))
	for number := 1; ; number++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(number, doc); err != nil {
			return err
		}
	}
}
