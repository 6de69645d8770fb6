package dnsmasq

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// statement is a line without its comment.
type statement struct {
	draft.Line
	keyword, value string
	// unread is why what it includes is not there.
	unread error
	// hosts is a hosts file that it includes.
	hosts *draft.File
}

// lists are keywords of files, or of directories of them, of which each line is the value of another keyword, or is one of a hosts file (dnsmasq:
// option.c, one_file and expand_filelist).
var lists = map[string]string{
	"dhcp-hostsfile": "dhcp-host", "dhcp-hostsdir": "dhcp-host", "dhcp-optsfile": "dhcp-option", "dhcp-optsdir": "dhcp-option", "addn-hosts": ofHosts, "hostsdir": ofHosts,
}

const ofHosts = "hosts"

// read has the statements of a file, with those of the files that it includes in their places. A list's have the keyword of its values.
func read(sources *draft.Sources, file draft.File, of string) (all []statement) {
	number := 0
	for whole := range strings.Lines(file.Text) {
		number++
		said := strings.TrimSpace(uncommented(whole))
		if said == "" {
			continue
		}
		keyword, value, _ := strings.Cut(said, "=")
		if of != "" {
			keyword, value = of, said
		}
		s := statement{Line: draft.Line{File: file.Name, Number: number, Text: said}, keyword: strings.TrimSpace(keyword), value: strings.TrimSpace(value)}
		files, includes := s.include(sources)
		for _, each := range files {
			if lists[s.keyword] == ofHosts {
				all = append(all, statement{Line: s.Line, keyword: s.keyword, hosts: &each})
				continue
			}
			all = append(all, read(sources, each, lists[s.keyword])...)
		}
		if !includes || s.unread != nil {
			all = append(all, s)
		}
	}
	return all
}

// include has the files that a statement includes, which says if it does.
func (s *statement) include(sources *draft.Sources) (files []draft.File, does bool) {
	values := fields(s.value)
	if len(values) == 0 {
		return nil, false
	}
	switch s.keyword {
	case "conf-file", "servers-file":
		files, s.unread = sources.Include(s.Line, values[0])
		return files, true
	case "dhcp-hostsfile", "dhcp-optsfile", "addn-hosts": // or a directory
		if files, s.unread = sources.Include(s.Line, values[0]); !errors.Is(s.unread, fs.ErrNotExist) {
			return files, true
		}
	case "conf-dir", "dhcp-hostsdir", "dhcp-optsdir", "hostsdir":
	default:
		return nil, false
	}
	files, s.unread = sources.Include(s.Line, path.Join(values[0], "*"), func(name string) bool { return ofDirectory(name, values[1:]) })
	switch {
	case !errors.Is(s.unread, fs.ErrNotExist):
	case lists[s.keyword] == ofHosts: // it may be given with --hosts
		s.unread = nil
		return nil, false
	case strings.HasSuffix(s.keyword, "dir"):
		s.unread = errors.New("give the files of that directory too, each with --dnsmasq")
	}
	return files, true
}

// ofDirectory says whether a file of a directory is read: not one that an editor has left, nor one that ends as is said; where what is said
// begins with *, only such (dnsmasq: option.c, one_opt).
func ofDirectory(name string, endings []string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") {
		return false
	}
	limited, among := false, false
	for _, ending := range endings {
		only, is := strings.CutPrefix(ending, "*")
		switch {
		case is:
			limited, among = true, among || strings.HasSuffix(name, only)
		case ending != "" && strings.HasSuffix(name, ending):
			return false
		}
	}
	return among || !limited
}
