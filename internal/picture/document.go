package picture

import (
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/cldmnky/oooi/internal/step"
)

//go:embed page.html style.css live.js
var files embed.FS

// Script is all that a document loads, beside it. Its Style is in it: nothing is painted before that is there.
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
	"style":   func() template.CSS { return template.CSS(Style) }, //nolint:gosec // it is embedded
	"mapFree": mapFree,
	"mapX":    mapX, "mapY": mapY,
	"mapWidth": func() int { return mapColumns * mapPitch }, "mapHeight": func(all []Address) int { return (len(all) + mapColumns - 1) / mapColumns * mapPitch },
}).ParseFS(files, "page.html"))

const (
	mapColumns = 64
	mapPitch   = 14
)

func mapX(i int) int { return i % mapColumns * mapPitch }

func mapY(i int) int { return i / mapColumns * mapPitch }

// mapFree is one shape for all free addresses: most are, and each element of a page takes its time.
func mapFree(all []Address) string {
	var path strings.Builder
	for i, a := range all {
		if a.Use == Free {
			fmt.Fprintf(&path, "M%d %dh12v12h-12z", mapX(i), mapY(i))
		}
	}
	return path.String()
}

func outcomeOf(ready bool) step.Outcome {
	if ready {
		return step.OK
	}
	return step.Fail
}

// Frame is what a document has before anything is read of what it shows. Paths are relative to its root, so that it can be served below any prefix.
type Frame struct {
	Title string
	// Base leads from the document to the root.
	Base string
	// Trail are the pages above it.
	Trail []Link
	// Events is where its changes are told to who has a Version.
	Events string
}

// FrameOf a worker's page, of an Infra's without one, or of the overview without any name.
func FrameOf(namespace, name, worker string) Frame {
	path := infraPath(namespace, name)
	switch {
	case name == "":
		return Frame{Title: "Infras and bridges", Base: "./", Events: "events"}
	case worker == "":
		return Frame{Title: "Infra " + namespace + "/" + name, Base: "../../", Events: "../../" + path + "/events"}
	}
	return Frame{Title: "Worker " + step.Plain(worker), Base: "../../../../", Trail: []Link{{namespace + "/" + name, path}}, Events: "../../../../" + workerPath(path, worker) + "/events"}
}

func infraPath(namespace, name string) string { return "infras/" + namespace + "/" + name }

func workerPath(infra, worker string) string { return infra + "/workers/" + url.PathEscape(worker) }

// Begin writes the top of the document, which a browser paints before the rest is there.
func (f Frame) Begin(to io.Writer) error { return templates.ExecuteTemplate(to, "begin", f) }

// Document is a page of HTML.
type Document struct {
	Frame
	Sections []Section
}

// Unread is the document of what cannot be read. Once it can, a browser loads it again (live.js).
func Unread(of Frame, says string) Document { return Document{of, []Section{section("unread", says)}} }

// Version is the same for the same content.
func (d Document) Version() string {
	sum := fnv.New64a()
	for _, s := range d.Sections {
		_ = s.write(sum) // a hash does not fail
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Link to a page; its path is relative to the root.
type Link struct{ Name, Path string }

// Write writes the document.
func (d Document) Write(to io.Writer) error {
	if err := d.Begin(to); err != nil {
		return err
	}
	return d.Rest(to)
}

// Rest writes what Begin has not.
func (d Document) Rest(to io.Writer) error {
	for _, s := range d.Sections {
		if err := s.write(to); err != nil {
			return err
		}
	}
	return templates.ExecuteTemplate(to, "end", d)
}

// Section is a part of a document. Its rows are parts of it that can change alone; before and after are around them.
type Section struct {
	ID            string
	rows          []row
	before, after template.HTML
}

// row is in memory once, however many documents have it: the next reading's, and those of viewers with other rights, have mostly the same.
type row struct {
	id   string
	html unique.Handle[template.HTML]
}

func (s Section) write(to io.Writer) error {
	if _, err := io.WriteString(to, string(s.before)); err != nil {
		return err
	}
	for _, row := range s.rows {
		if _, err := io.WriteString(to, string(row.html.Value())); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, string(s.after))
	return err
}

func (s Section) part() Part {
	var all strings.Builder
	_ = s.write(&all)                              // a Builder does not fail
	return Part{s.ID, template.HTML(all.String())} //nolint:gosec // html/template made it
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
		if s.before != before.before || s.after != before.after || !sameRows(before.rows, s.rows) {
			all = append(all, s.part())
			continue
		}
		for i, row := range s.rows {
			if row.html != before.rows[i].html {
				all = append(all, Part{row.id, row.html.Value()})
			}
		}
	}
	return all
}

func sameRows(a, b []row) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].id != b[i].id {
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

func section(name string, of any) Section { return Section{ID: name, before: drawn(name, of)} }

// row of the boot wall. html/template would take most of the time that a page takes, for ten thousand cells.
func (w Worker) row(id, path string) template.HTML {
	var out strings.Builder
	text := func(s string) string { return template.HTMLEscapeString(step.Plain(s)) }
	fmt.Fprintf(&out, `<tr id="%s"><th scope="row"><a id="%[1]s-link" href="%s">%s</a></th><td>%s</td><td class="stands %s">%s</td>`,
		template.HTMLEscapeString(id), template.HTMLEscapeString(path), text(w.Name), text(w.Address), w.State, text(w.Stands()))
	for _, o := range slices.Concat(w.Cells, w.Seen) {
		if o == "" {
			out.WriteString("<td></td>")
		} else {
			out.WriteString(`<td class="` + string(o) + `">` + string(o) + "</td>")
		}
	}
	out.WriteString("</tr>\n")
	return template.HTML(out.String()) //nolint:gosec // what others have written is escaped; the rest are words of ours
}

// Document of an Infra.
func (p Page) Document() Document {
	wall := Section{ID: "wall", before: drawn("wall", p), after: drawn("wall-end", p), rows: make([]row, len(p.Workers))}
	path := infraPath(p.Namespace, p.Name)
	for i, w := range p.Workers {
		id := "w-" + w.Name
		wall.rows[i] = row{id, unique.Make(w.row(id, "../../"+workerPath(path, w.Name)))}
	}
	return Document{
		FrameOf(p.Namespace, p.Name, ""),
		[]Section{section("summary", p), section("vlan", p), wall, section("names", p), section("requests", p), section("services", p), section("pool", p)},
	}
}

// Worker is the document of one worker.
func (p Page) Worker(name string) Document {
	s := Section{ID: "steps", before: drawn("gone", p.Undrawn)}
	for _, w := range p.Workers {
		if w.Name == name {
			s.before = drawn("steps", w)
		}
	}
	return Document{FrameOf(p.Namespace, p.Name, name), []Section{s}}
}
