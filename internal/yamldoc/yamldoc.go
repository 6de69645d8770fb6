// Package yamldoc splits YAML into its documents.
package yamldoc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Each gives each document of YAML, in UTF-8 or as PowerShell redirects it, to take, from number 1 on, until that fails. A document may be empty. The lines
// in an error of the YAML parser become those of the file.
func Each(text []byte, take func(number int, doc []byte) error) error {
	text = InUTF8(text)
	left := bytes.NewReader(text)
	buffered := bufio.NewReader(left)
	docs := utilyaml.NewYAMLReader(buffered)
	for number := 1; ; number++ {
		begins := len(text) - left.Len() - buffered.Buffered()
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(number, doc); err != nil {
			return inFile{err, bytes.Count(text[:begins], []byte("\n"))}
		}
	}
}

// inFile is an error in a document that has lines before it.
type inFile struct {
	error
	before int
}

func (e inFile) Unwrap() error { return e.error }

// atLine is how the parser says a line: of its only error, or of each of several (go.yaml.in/yaml/v2 v2.4: yaml.go, TypeError; decode.go, fail);
// and how NotYAML does.
var atLine = regexp.MustCompile(`((?:yaml|YAML): |helm template \(|\n  )line (\d+)\b`)

func (e inFile) Error() string {
	return atLine.ReplaceAllStringFunc(e.error.Error(), func(said string) string {
		parts := atLine.FindStringSubmatch(said)
		line, err := strconv.Atoi(parts[2])
		if err != nil {
			return said
		}
		return fmt.Sprintf("%sline %d", parts[1], line+e.before)
	})
}
