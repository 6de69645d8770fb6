package picture

import (
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/step"
)

//go:embed page.html style.css live.js
var files embed.FS

// Style and Script are all that a document loads, beside it.
var (
	Style  = asset("style.css")
	Script = asset("live.js")
)

func asset(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// templates escape all that others have written for its place (html/template); plain also shows what would be invisible or turn text around.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"plain":   step.Plain,
	"outcome": outcomeOf,
	"mapX":    func(i int) int { return i % mapColumns * mapPitch }, "mapY": func(i int) int { return i / mapColumns * mapPitch },
	"mapWidth": func() int { return mapColumns * mapPitch }, "mapHeight": func(all []Address) int { return (len(all) + mapColumns - 1) / mapColumns * mapPitch },
}).ParseFS(files, "page.html"))

const (
	mapColumns = 64
	mapPitch   = 14
)

func outcomeOf(ready bool) step.Outcome {
	if ready {
		return step.OK
	}
	return step.Fail
}

// Document is a page of HTML. Paths are relative to its root, so that it can be served below any prefix.
type Document struct {
	Title string
	// Base leads from the document to the root.
	Base string
	// Trail are the pages above it.
	Trail []Link
	// Events is where its changes are told to who has a Version.
	Events   string
	Sections []Section
}

// Version is the same for the same content.
func (d Document) Version() string {
	sum := fnv.New64a()
	for _, s := range d.Sections {
		_, _ = sum.Write([]byte(s.HTML)) // a hash does not fail
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Link to a page; its path is relative to the root.
type Link struct{ Name, Path string }

// Write writes the document.
func (d Document) Write(to io.Writer) error { return templates.ExecuteTemplate(to, "page", d) }

// Section is a part of a document.
type Section struct {
	Part
	// Rows are parts of it that can change alone; its HTML contains them, and frame does not.
	Rows  []Part
	frame template.HTML
}

// Part of a document is an element with an ID.
type Part struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

// Changes are the parts to replace, so that a document that shows old shows these sections.
func Changes(old, now []Section) (all []Part) {
	was := map[string]Section{}
	for _, s := range old {
		was[s.ID] = s
	}
	for _, s := range now {
		before := was[s.ID]
		if s.frame != before.frame || !sameRows(before.Rows, s.Rows) {
			all = append(all, s.Part)
			continue
		}
		for i, row := range s.Rows {
			if row.HTML != before.Rows[i].HTML {
				all = append(all, row)
			}
		}
	}
	return all
}

func sameRows(a, b []Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID {
			return false
		}
	}
	return true
}

func drawn(name string, of any) template.HTML {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, of); err != nil {
		panic(fmt.Sprintf("template %s: %v", name, err)) // templates are tried by tests, and a Builder does not fail
	}
	return template.HTML(out.String()) //nolint:gosec // html/template made it
}

func section(name string, of any) Section {
	html := drawn(name, of)
	return Section{Part: Part{name, html}, frame: html}
}

// Document of an Infra.
func (p Page) Document() Document {
	wall := struct {
		Page
		Rows []template.HTML
	}{Page: p}
	empty := drawn("wall", wall)
	rows := make([]Part, len(p.Workers))
	for i, w := range p.Workers {
		id := "w-" + w.Name
		rows[i] = Part{id, drawn("row", struct {
			Worker
			ID, Path string
		}{w, id, "../../" + p.path() + "/workers/" + url.PathEscape(w.Name)})}
		wall.Rows = append(wall.Rows, rows[i].HTML)
	}
	return Document{
		Title: "Infra " + p.Namespace + "/" + p.Name, Base: "../../", Events: "../../" + p.path() + "/events",
		Sections: []Section{section("summary", p), section("vlan", p), {Part{"wall", drawn("wall", wall)}, rows, empty}, section("names", p), section("requests", p), section("services", p), section("pool", p)},
	}
}

func (p Page) path() string { return "infras/" + p.Namespace + "/" + p.Name }

// Worker is the document of one worker.
func (p Page) Worker(name string) Document {
	at := p.path() + "/workers/" + url.PathEscape(name)
	d := Document{Title: "Worker " + step.Plain(name), Base: "../../../../", Trail: []Link{{p.Namespace + "/" + p.Name, p.path()}}, Events: "../../../../" + at + "/events"}
	s := Section{Part: Part{"steps", drawn("gone", p.Undrawn)}}
	for _, w := range p.Workers {
		if w.Name == name {
			s.HTML = drawn("steps", w)
		}
	}
	s.frame = s.HTML
	d.Sections = []Section{s}
	return d
}
