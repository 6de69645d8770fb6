// Package braces reads configurations made of statements that end with a semicolon or with a block in braces, as ISC's programs have them.
package braces

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// Word of a statement; a quoted one is never a name.
type Word struct {
	Text   string
	Quoted bool
}

// Statement ends with a semicolon, or with a block.
type Statement struct {
	draft.Line
	Words []Word
	Block []Statement
	// Opens says that it has a block, which may be empty.
	Opens bool
	// Cut says that the file ends in it.
	Cut bool
	// Unread is why it, or what it includes, cannot be taken.
	Unread error
}

// String is its words, without quotes and block.
func (s Statement) String() string {
	words := make([]string, len(s.Words))
	for i, w := range s.Words {
		words[i] = w.Text
	}
	return strings.Join(words, " ")
}

// Is says whether it begins with these words.
func (s Statement) Is(words ...string) bool {
	if len(s.Words) < len(words) {
		return false
	}
	for i, w := range words {
		if s.Words[i].Quoted || !strings.EqualFold(s.Words[i].Text, w) {
			return false
		}
	}
	return true
}

// Values are the words from one on, those between two commas as one.
func (s Statement) Values(from int) (all []string) {
	var value []string
	for _, w := range s.Words[min(from, len(s.Words)):] {
		if w.Text == "," && !w.Quoted {
			all, value = append(all, strings.Join(value, " ")), nil
			continue
		}
		value = append(value, w.Text)
	}
	if len(value) > 0 {
		all = append(all, strings.Join(value, " "))
	}
	return all
}

// parser reads words.
type parser struct {
	file, text string
	at, line   int
	// slashes says that comments may be written as in C, too.
	slashes bool
}

// next is the following word; false at the end. Signs that separate are words of their own.
func (p *parser) next() (Word, bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '\n':
			p.line++
			p.at++
		case c == ' ' || c == '\t' || c == '\r':
			p.at++
		case p.slashes && strings.HasPrefix(p.text[p.at:], "/*"):
			comment, _, ends := strings.Cut(p.text[p.at:], "*/")
			if !ends { // so that the file ends in a statement
				p.at = len(p.text)
				return Word{Text: comment}, true
			}
			p.line += strings.Count(comment, "\n")
			p.at = min(p.at+len(comment)+2, len(p.text))
		case c == '#' || p.slashes && strings.HasPrefix(p.text[p.at:], "//"):
			p.at += len(untilNewline(p.text[p.at:]))
		case c == '"':
			return p.quoted(), true
		case strings.IndexByte("{};,=()", c) >= 0:
			p.at++
			return Word{Text: string(c)}, true
		default:
			end := strings.IndexAny(p.text[p.at:], " \t\r\n{};,=()\"#")
			if end < 0 {
				end = len(p.text) - p.at
			}
			p.at += end
			return Word{Text: p.text[p.at-end : p.at]}, true
		}
	}
	return Word{}, false
}

func untilNewline(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// quoted text, in which a backslash takes what follows as it is, if it is no escape.
func (p *parser) quoted() Word {
	var text strings.Builder
	for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' && p.at+1 < len(p.text) {
			p.at++
			if octet, signs := p.escape(); signs > 0 {
				text.WriteByte(octet)
				p.at += signs - 1
				continue
			}
		}
		if p.text[p.at] == '\n' {
			p.line++
		}
		text.WriteByte(p.text[p.at])
	}
	p.at = min(p.at+1, len(p.text))
	return Word{text.String(), true}
}

// escape is the octet that ISC dhcpd takes for what is behind a backslash, and by how many signs it is said: none if they are no escape
// (its common/conflex.c, read_string).
func (p *parser) escape() (octet byte, signs int) {
	rest := p.text[p.at:]
	if p.slashes {
		return 0, 0
	}
	if i := strings.IndexByte("trnb", rest[0]); i >= 0 {
		return "\t\r\n\b"[i], 1
	}
	first, base := 0, 8
	if rest[0] == 'x' {
		first, base = 1, 16
	}
	if len(rest) < 3 {
		return 0, 0
	}
	value, err := strconv.ParseUint(rest[first:3], base, 8)
	if err != nil {
		return 0, 0
	}
	return byte(value), 3
}

// block reads statements until the brace that ends it, or the end of the file; it says whether there was a brace.
func (p *parser) block() (all []Statement, ended bool) {
	var s Statement
	begin := 0
	finish := func() {
		if len(s.Words) > 0 {
			s.Text = p.text[begin:p.at]
			all = append(all, s)
		}
		s = Statement{}
	}
	for {
		w, more := p.next()
		switch {
		case !more:
			s.Cut = true
			finish()
			return all, false
		case w.Quoted || !strings.Contains("{};", w.Text):
			if len(s.Words) == 0 {
				s.Line, begin = draft.Line{File: p.file, Number: p.line}, p.at-len(w.Text)
			}
			s.Words = append(s.Words, w)
		case w.Text == ";":
			finish()
		case w.Text == "}":
			finish()
			return all, true
		default:
			if len(s.Words) == 0 { // every statement has a word
				s.Line, begin = draft.Line{File: p.file, Number: p.line}, p.at-1
				s.Words = []Word{{}}
			}
			text := p.text[begin:p.at]
			s.Opens = true
			ended := false
			s.Block, ended = p.block()
			s.Cut = !ended
			s.Text = text + " … }"
			all, s = append(all, s), Statement{}
		}
	}
}

// Parse reads a file. A comment begins with #, and where there are slashes, with // or /*, too.
func Parse(file draft.File, slashes bool) []Statement {
	p := &parser{file: file.Name, text: file.Text, line: 1, slashes: slashes}
	var all []Statement
	for {
		some, ended := p.block()
		all = append(all, some...)
		if !ended {
			return all
		}
		at := draft.Line{File: p.file, Number: p.line, Text: "}"}
		all = append(all, Statement{Line: at, Words: []Word{{Text: "}"}}, Unread: errors.New("no { is before it, and its server refuses that: mend it")})
	}
}

// endless says of a statement that its file ends in it, and in which of those in it.
func (s Statement) endless() error {
	last := s
	for n := len(last.Block); n > 0 && last.Block[n-1].Cut; n = len(last.Block) {
		last = last.Block[n-1]
	}
	end := ";"
	if last.Opens {
		end = "}"
	}
	return fmt.Errorf("nothing of it is taken, since the file ends before the %s of the statement on line %d: write what is missing", end, last.Number)
}

// Include puts what files have in the place of the statements that include them. Named is asked of each statement, in their order, which file it
// includes, if it includes one.
func Include(sources *draft.Sources, statements []Statement, slashes bool, named func(Statement) (string, bool)) (all []Statement) {
	for _, s := range statements {
		if s.Cut {
			s.Unread = s.endless()
			all = append(all, s)
			continue
		}
		name, is := named(s)
		if !is {
			s.Block = Include(sources, s.Block, slashes, named)
			all = append(all, s)
			continue
		}
		files, err := sources.Include(s.Line, name)
		for _, file := range files {
			all = append(all, Include(sources, Parse(file, slashes), slashes, named)...)
		}
		if s.Unread = err; err != nil {
			all = append(all, s)
		}
	}
	return all
}
