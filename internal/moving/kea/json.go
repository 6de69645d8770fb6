package kea

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// node is a value of JSON with the line on which it begins.
type node struct {
	line   int
	text   string // of a string, a number or a constant
	null   bool
	fields []field
	items  []node
	object bool
}

// field of an object.
type field struct {
	name  string
	line  int
	value node
}

// get is a field's value; one that is not there is null.
func (n node) get(name string) node {
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return node{null: true}
}

// plain is JSON without what Kea admits beside it: comments as in C, C++ and shell, and commas before a bracket that closes. What goes
// becomes blanks, so that places stay (Kea: src/bin/dhcp4/dhcp4_lexer.ll).
func plain(text string) string {
	out := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	comma := -1
	for i := 0; i < len(out); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(out) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == '#' || strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			blank(i, i+len(line))
			i += len(line) - 1
		case strings.HasPrefix(rest, "/*"):
			comment, _, _ := strings.Cut(rest, "*/")
			end := min(i+len(comment)+2, len(out))
			blank(i, end)
			i = end - 1
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			blank(comma, comma+1)
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return string(out)
}

// parse reads a configuration. With an error it has what stands before.
func parse(text string) (node, error) {
	text = plain(text)
	p := &parser{text: text, decoder: json.NewDecoder(strings.NewReader(text))}
	p.decoder.UseNumber()
	n, err := p.value()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("line %d: it ends too early", p.line())
	}
	return n, err
}

type parser struct {
	text    string
	decoder *json.Decoder
}

// line of what was read last.
func (p *parser) line() int {
	return 1 + strings.Count(p.text[:min(int(p.decoder.InputOffset()), len(p.text))], "\n")
}

func (p *parser) value() (node, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return node{}, p.wrong(err)
	}
	n := node{line: p.line()}
	switch t := token.(type) {
	case json.Delim:
		return p.inside(n, t)
	case nil:
		n.null = true
	default:
		n.text = fmt.Sprint(t)
	}
	return n, nil
}

func (p *parser) inside(n node, open json.Delim) (node, error) {
	n.object = open == '{'
	for p.decoder.More() {
		f := field{}
		if n.object {
			name, err := p.decoder.Token()
			if err != nil {
				return n, p.wrong(err)
			}
			f.name, f.line = fmt.Sprint(name), p.line()
		}
		value, err := p.value()
		f.value = value
		if n.object {
			n.fields = append(n.fields, f)
		} else {
			n.items = append(n.items, value)
		}
		if err != nil {
			return n, err
		}
	}
	_, err := p.decoder.Token()
	return n, p.wrong(err)
}

func (p *parser) wrong(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", 1+strings.Count(p.text[:min(int(syntax.Offset), len(p.text))], "\n"), err)
	}
	return err
}
