package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// NotYAML is a parser's error in plain words: Go's types, which it names, are not the user's. Lines are the document's; Each makes them the file's.
func NotYAML(doc []byte, err error) error {
	says := err.Error()
	if at := strings.LastIndex(says, "yaml: "); at >= 0 {
		says = says[at+len("yaml: "):]
	}
	switch {
	case strings.Contains(says, "control characters are not allowed") && bytes.IndexByte(doc, 0) < 0:
		return errors.New("it has a control character, as one that colours a terminal is, and YAML allows none: remove it")
	case strings.Contains(says, "control characters are not allowed"):
		return errors.New("it is no text")
	case strings.Contains(says, "invalid map key"):
		says = "a name of a field is an object, and has to be text"
	}
	says = strings.ReplaceAll(strings.TrimPrefix(says, "unmarshal errors:\n  "), "already set in map", "is there already")
	if at := bytes.Index(doc, []byte("{{")); at >= 0 {
		return fmt.Errorf("it is no YAML: line %d has {{: if this is a template, render it first, e.g. with helm template (%s)", 1+bytes.Count(doc[:at], []byte("\n")), says)
	}
	return fmt.Errorf("it is no YAML: %s", says)
}
