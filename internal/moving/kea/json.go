package kea

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// node is a value of JSON with the line on which it begins.
type node struct {
	at     draft.Line
	text   string // of a string, a number or a constant
	null   bool
	fields []field
	items  []node
	object bool
}

// field of an object.
type field struct {
	name  string
	at    draft.Line
	value node
}

// named is where it begins, as a statement.
func (n node) named(text string) draft.Line {
	n.at.Text = text
	return n.at
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
func parse(t text) (node, error) {
	t.text = plain(t.text) // of commas before what is included
	p := &parser{text: t, decoder: json.NewDecoder(strings.NewReader(t.text))}
	p.decoder.UseNumber()
	n, err := p.value()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s: it ends too early", p.line().Where())
	}
	return n, err
}

type parser struct {
	text
	decoder *json.Decoder
}

// line of what was read last.
func (p *parser) line() draft.Line { return p.at(int(p.decoder.InputOffset())) }

func (p *parser) value() (node, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return node{}, p.wrong(err)
	}
	n := node{at: p.line()}
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
			f.name, f.at = fmt.Sprint(name), p.line()
		}
		value, err := p.value()
		f.value = value
		switch {
		case n.object && f.name != absent:
			n.fields = append(n.fields, f)
		case !n.object && !value.null:
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
		return fmt.Errorf("%s: %w", p.at(int(syntax.Offset)).Where(), err)
	}
	return err
}
