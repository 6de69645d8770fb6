package kea

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// node is a value of JSON with the line on which it begins.
type node struct {
	at     draft.Line
	text   string // of a string, a number or a constant
	float  bool   // a number that Kea takes for no integer
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

// integer is a number; false if it is none, or none that Kea takes for an integer.
func (n node) integer() (int, bool) {
	number, err := strconv.Atoi(n.text)
	return number, err == nil && !n.float
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

// plain is JSON without what Kea admits beside it: comments as in C, C++ and shell, commas before a bracket that closes, and numbers like .5, +5 and 05.
// What goes becomes blanks, so that places stay (Kea: src/bin/dhcp4/dhcp4_lexer.ll).
func plain(text string) string {
	out := []byte(text)
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
			blank(out, i, i+len(line))
			i += len(line) - 1
		case strings.HasPrefix(rest, "/*"):
			comment, _, _ := strings.Cut(rest, "*/")
			end := min(i+len(comment)+2, len(out))
			blank(out, i, end)
			i = end - 1
		case c == ',':
			comma = i
		case c == '+' && !strings.ContainsAny(text[max(i-1, 0):i], "eE"): // of no exponent
			blank(out, i, i+1)
		case leadingZero(out, i):
			out[i] = ' '
			if out[i-1] == '-' {
				out[i-1], out[i] = ' ', '-'
			}
		case c == '.' && i > 0 && out[i-1] == ' ':
			out[i-1] = '0'
		case (c == '}' || c == ']') && comma >= 0:
			blank(out, comma, comma+1)
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return string(out)
}

func blank(text []byte, from, to int) {
	for i := from; i < to; i++ {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
}

// leadingZero says whether a number begins, or goes on, with a zero that does not count: Kea's are decimal.
func leadingZero(text []byte, at int) bool {
	if at == 0 || at+1 == len(text) || text[at] != '0' || text[at+1] < '0' || text[at+1] > '9' {
		return false
	}
	before := text[at-1]
	return strings.IndexByte(" \t\r\n:,[", before) >= 0 || before == '-' && at > 1 && text[at-2] != 'e' && text[at-2] != 'E'
}

// parse reads a configuration. With an error it has what stands before, and where that ends.
func parse(t text) (top node, at draft.Line, err error) {
	t.text = plain(t.text) // of commas before what is included
	p := &parser{text: t, decoder: json.NewDecoder(strings.NewReader(t.text))}
	p.decoder.UseNumber()
	if top, err = p.value(); err == nil {
		if _, err = p.decoder.Token(); errors.Is(err, io.EOF) {
			return top, at, nil
		}
		err = errors.New("it stands behind the end of the configuration")
	}
	return p.stops(top, err)
}

// stops is at what follows the last token that was read: syntax errors count their offsets in another way.
func (p *parser) stops(top node, err error) (node, draft.Line, error) {
	read := int(p.decoder.InputOffset())
	rest := p.text.text[read:]
	next := strings.TrimLeft(rest, " \t\r\n")
	at := p.at(read + len(rest) - len(next))
	at.Text, _, _ = strings.Cut(next, "\n")
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at.Text, err = "the end of the file", errors.New("a bracket or quote is not closed")
	}
	return top, at, err
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
		return node{}, err
	}
	n := node{at: p.line()}
	switch t := token.(type) {
	case json.Delim:
		return p.inside(n, t)
	case nil:
		n.null = true
	case json.Number:
		if n.text = t.String(); p.plus(len(n.text)) {
			n.text = "+" + n.text
		}
		n.float = strings.ContainsAny(n.text, "+.eE")
	default:
		n.text = fmt.Sprint(t)
	}
	return n, nil
}

// plus says whether the number of a length that was read last has that sign, with which it is no integer to Kea (src/bin/dhcp4/dhcp4_lexer.ll).
func (p *parser) plus(length int) bool {
	before := p.written[:int(p.decoder.InputOffset())-length]
	return strings.HasSuffix(strings.TrimRight(before, "0"), "+")
}

func (p *parser) inside(n node, open json.Delim) (node, error) {
	n.object = open == '{'
	for p.decoder.More() {
		f := field{}
		if n.object {
			name, err := p.decoder.Token()
			if err != nil {
				return n, err
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
	return n, err
}
