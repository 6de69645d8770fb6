package draft

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Tree is what a given file may include without being asked for: all below its directory.
type Tree struct {
	fs.FS
	// Name of the directory, as the admin writes it, and its path from the root of this machine.
	Name, Path string
}

// How far includes are followed. Kea stops at ten, too (src/bin/dhcp4/dhcp4_lexer.ll); the others have no bound.
const deepest, mostIncluded = 10, 1024

// largest is the size of an included file.
const largest = 16 << 20

// Sources are the files of one kind that are given, and finds those that they include.
type Sources struct {
	given    []*File
	byName   map[string]*File
	included map[*File]string // the path by which a given file is included
	wanted   []string
	count    int
}

// NewSources are given files.
func NewSources(given []File) *Sources {
	s := &Sources{byName: map[string]*File{}, included: map[*File]string{}}
	for i := range given {
		file := &given[i]
		s.given, s.byName[file.Name] = append(s.given, file), file
	}
	return s
}

// Roots are what is read of the given files that no other includes.
func Roots[T any](s *Sources, read func(File) T) (all []T) {
	made := map[*File]T{}
	for _, file := range s.given {
		if s.included[file] == "" {
			made[file] = read(*file)
		}
	}
	for _, file := range s.given {
		if made, is := made[file]; is && s.included[file] == "" {
			all = append(all, made)
		}
	}
	return all
}

// Want says that a path will be asked for: a given file is not taken for another one while it may be this one.
func (s *Sources) Want(name string) { s.wanted = append(s.wanted, path.Clean(name)) }

// Include has the files that a statement includes, by a path or a pattern (path.Match), of which those count whose names are kept, if that is
// asked. The servers take a path from their working directory, for which the directory of the given file stands.
func (s *Sources) Include(at Line, name string, kept ...func(name string) bool) (all []File, err error) {
	by, name := s.byName[at.File], path.Clean(name)
	if s.count >= mostIncluded {
		return nil, fmt.Errorf("it is not read, since %d files are included already: give a part of them only", mostIncluded)
	}
	if by.depth == deepest {
		return nil, fmt.Errorf("it is not read, since files are included %d deep already", deepest)
	}
	matches, there := by.Tree.find(name)
	if !there {
		found, err := s.named(name)
		return s.taken(by, name, found, err)
	}
	var found []File
	for _, match := range matches {
		if slices.ContainsFunc(kept, func(keep func(string) bool) bool { return !keep(path.Base(match)) }) {
			continue
		}
		text, unread := by.Tree.read(match)
		if unread != nil {
			err = errors.Join(err, fmt.Errorf("it is not read: %w", unread))
			continue
		}
		if s.count++; s.count > mostIncluded {
			err = errors.Join(err, fmt.Errorf("from %s on they are not read, since %d files are included already", match, mostIncluded))
			break
		}
		found = append(found, File{Name: path.Join(by.Tree.Name, match), Text: text, Tree: by.Tree, Within: match})
	}
	return s.taken(by, name, found, err)
}

// taken are found files, each of which is read where another includes it, and not by itself, too.
func (s *Sources) taken(by *File, name string, found []File, err error) (all []File, _ error) {
	for _, file := range found {
		given := s.sameAs(file)
		if given != nil {
			file.Name = given.Name
		}
		if file.includes(by) {
			err = errors.Join(err, fmt.Errorf("%s is read once, and includes itself here", file.Name))
			continue
		}
		if given != nil {
			s.included[given] = name
		}
		file.by, file.depth = by, by.depth+1
		s.byName[file.Name] = &file
		all = append(all, file)
	}
	return all, err
}

// find has the files of a tree that a path stands for, and whether its place is in the tree. A path from the root is looked for where the tree
// ends as the path begins, so that a copy of /etc has its own files.
func (t *Tree) find(name string) (matches []string, there bool) {
	if t != nil && path.IsAbs(name) {
		name = t.below(name)
	}
	if t == nil || !fs.ValidPath(name) {
		return nil, false
	}
	matches, _ = fs.Glob(t.FS, name) // a bad pattern matches nothing
	matches = slices.DeleteFunc(matches, func(match string) bool {
		about, err := fs.Stat(t.FS, match)
		return err == nil && about.IsDir()
	})
	about, err := fs.Stat(t.FS, path.Dir(name))
	return matches, len(matches) > 0 || isPattern(name) && err == nil && about.IsDir()
}

// NoText is a file that is a program, an archive, a zone in BIND's raw format, or text in UTF-16, which no server reads.
type NoText struct{ Name string }

// Error implements error.
func (n NoText) Error() string {
	return n.Name + " is no text file: give the server's configuration, unpacked and in UTF-8, and a raw zone of BIND as named-compilezone -f raw -F text writes it"
}

// Text of a file without the byte order mark that some editors write before it. No server's configuration has a NUL.
func Text(name string, raw []byte) (string, error) {
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", NoText{name}
	}
	return strings.TrimPrefix(string(raw), "\ufeff"), nil
}

func isPattern(name string) bool { return strings.ContainsAny(path.Base(name), `*?[`) }

func (t *Tree) read(name string) (string, error) {
	about, err := fs.Stat(t.FS, name) // t itself has no Stat: it would be opened, and a FIFO holds up who opens it
	if err != nil {
		return "", err
	}
	if !about.Mode().IsRegular() || about.Size() > largest {
		return "", fmt.Errorf("%s is not a file of at most %d MiB", name, largest>>20)
	}
	text, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return "", err
	}
	return Text(path.Join(t.Name, name), text)
}

// below is a path from the root, as the tree has it; empty if it does not.
func (t *Tree) below(name string) string {
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	for n := len(parts) - 1; n > 0; n-- {
		if strings.HasSuffix(t.Path+"/", "/"+path.Join(parts[:n]...)+"/") {
			return path.Join(parts[n:]...)
		}
	}
	if t.Path == "/" {
		return path.Join(parts...)
	}
	return ""
}

// path from the root of this machine; standard input has none.
func (f *File) path() string {
	if f.Tree == nil {
		return ""
	}
	return path.Join(f.Tree.Path, f.Within)
}

// sameAs is the given file that was found by a path, too.
func (s *Sources) sameAs(found File) *File {
	for _, file := range s.given {
		if file.path() != "" && file.path() == found.path() {
			return file
		}
	}
	return nil
}

// named are the given files whose paths end as the included one's, the more of it, the better. A file that may be another path's is not taken,
// and a pattern's are those of a directory of its name.
func (s *Sources) named(name string) (all []File, err error) {
	longest := 1
	if isPattern(name) {
		longest = 2
	}
	var best []*File
	for _, file := range s.given {
		n := tail(name, file.path())
		if n > longest {
			best, longest = nil, n
		}
		if n == longest {
			best = append(best, file)
		}
	}
	if len(best) == 0 {
		return nil, fs.ErrNotExist
	}
	for _, file := range best {
		mayBe := func(other string) bool { return other != name && tail(other, file.path()) >= longest }
		if len(best) > 1 && !isPattern(name) || slices.ContainsFunc(s.wanted, mayBe) || s.included[file] != "" && s.included[file] != name {
			return nil, fmt.Errorf("%s may be it, or not: give it by a path that ends as this one", file.Name)
		}
		all = append(all, *file)
	}
	return all, nil
}

// tail is how many last parts of a path, or a pattern, another one has.
func tail(pattern, name string) (n int) {
	patterns, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	for n < min(len(patterns), len(names)) {
		part := patterns[len(patterns)-1-n]
		if is, err := path.Match(part, names[len(names)-1-n]); !is || err != nil || part == "" {
			return n
		}
		n++
	}
	return n
}

// includes says whether a file is another one, or includes it.
func (f File) includes(other *File) bool {
	for ; other != nil; other = other.by {
		if other.Name == f.Name {
			return true
		}
	}
	return false
}

// NotRead lists a statement whose own text, or a file that it names, is not read, without which the Infra is not to be applied; flag is the one
// of its kind.
func (s *Site) NotRead(at Line, err error, flag string) {
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	if errors.Is(err, fs.ErrNotExist) {
		why = "give that file too, with " + flag
	}
	s.Leave(at, "%s", why)
	s.Unread = append(s.Unread, at)
}
