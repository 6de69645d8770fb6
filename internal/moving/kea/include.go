package kea

import (
	"regexp"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// text is that of a file with those that it includes in their places.
type text struct {
	text string
	// written is the same before it was made plain, at the same places.
	written string
	parts   []part
	// unread are those that are not there.
	unread []unread
	// open are the brackets around what comes next, and last is what came last, if it is a sign.
	open, last string
}

// unread is why an included file is not there.
type unread struct {
	draft.Line
	error
}

// part of a text is from its offset on that of a file from a line on.
type part struct {
	offset int
	draft.Line
}

// at is the line of an offset.
func (t *text) at(offset int) draft.Line {
	offset = min(offset, len(t.text))
	for i := len(t.parts) - 1; i >= 0; i-- {
		if p := t.parts[i]; p.offset <= offset {
			p.Number += strings.Count(t.text[p.offset:offset], "\n")
			return p.Line
		}
	}
	return draft.Line{}
}

// token is what decides what may stand in a place. A file is included wherever something may be written (Kea: src/bin/dhcp4/dhcp4_lexer.ll, where
// it is opened as it is written).
var token = regexp.MustCompile(`"(?:\\.|[^"\\])*"|<\?include\s+"([^"\n]+)"\s*\?>|[{}\[\]:,]`)

// absent is the name of a field whose file is not there.
const absent = ""

// add appends a file.
func (t *text) add(sources *draft.Sources, file draft.File) {
	said := plain(file.Text)
	from := 0
	upTo := func(end int) {
		t.parts = append(t.parts, part{len(t.text), draft.Line{File: file.Name, Number: 1 + strings.Count(said[:from], "\n")}})
		t.text, t.written = t.text+said[from:end], t.written+file.Text[from:end]
		from = end
	}
	for _, found := range token.FindAllStringSubmatchIndex(said, -1) {
		sign := said[found[0]:found[1]]
		if found[2] < 0 {
			t.sees(sign)
			continue
		}
		upTo(found[0])
		line := draft.Line{File: file.Name, Number: 1 + strings.Count(said[:from], "\n"), Text: sign}
		t.include(sources, line, said[found[2]:found[3]])
		from = found[1]
	}
	upTo(len(said))
}

func (t *text) sees(sign string) {
	switch t.last = sign; sign {
	case "{", "[":
		t.open += sign
	case "}", "]":
		t.open = t.open[:max(len(t.open)-1, 0)]
	}
}

// include appends what a file includes, or something that is nothing, where the rest can be read.
func (t *text) include(sources *draft.Sources, at draft.Line, name string) {
	files, err := sources.Include(at, name)
	for _, file := range files {
		t.add(sources, file)
	}
	if err == nil {
		return
	}
	t.unread = append(t.unread, unread{at, err})
	nothing := "null"
	if strings.HasSuffix(t.open, "{") && t.last != ":" {
		nothing = `"` + absent + `":null`
	}
	t.text, t.written = t.text+nothing, t.written+nothing
}
