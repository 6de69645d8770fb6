package leasecli

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/leasefile"
)

// File is what a lease file says.
type File struct {
	Name     string
	Entries  []leasefile.Entry
	Problems []leasefile.Problem
}

// ReadFiles reads files of a kind (leasefile.Kinds), and those of Kea's that lie beside them, of which told hears, as of files that seem to be of another kind. Of each address only the last
// file that has it says something.
func ReadFiles(files []string, kind string, told func(string)) (all []File, err error) {
	if kind == "kea" {
		files = besideKeas(files, told)
	}
	latest := map[netip.Addr]int{}
	for n, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		in := File{Name: file}
		in.Entries, in.Problems = leasefile.Kinds[kind](string(content))
		if len(in.Entries) == 0 && len(in.Problems) > 0 {
			told(fmt.Sprintf("%s: nothing in it is a lease as %s writes it; --from says what wrote the file: %s", file, kind, strings.Join(leasefile.Names(), ", ")))
		}
		for _, e := range in.Entries {
			latest[e.IP] = n
		}
		all = append(all, in)
	}
	for n := range all {
		all[n].Entries = slices.DeleteFunc(all[n].Entries, func(e leasefile.Entry) bool { return latest[e.IP] != n })
	}
	return all, nil
}

// besideKeas adds the files that Kea reads before each file, unless they are given: FILE.completed, or else FILE.2 and FILE.1 (Kea 2.6,
// src/lib/dhcpsrv/memfile_lease_mgr.cc, loadLeasesFromFiles). FILE itself has no more than the changes since they were written.
func besideKeas(files []string, told func(string)) (all []string) {
	there := func(file string) bool {
		_, err := os.Stat(file)
		return err == nil && !slices.Contains(files, file)
	}
	for _, file := range files {
		var before []string
		if completed := file + ".completed"; there(completed) {
			before = []string{completed}
		} else {
			before = slices.DeleteFunc([]string{file + ".2", file + ".1"}, func(f string) bool { return !there(f) })
		}
		if len(before) > 0 {
			told(fmt.Sprintf("%s read first: %s has only what changed since", strings.Join(before, " and "), file))
		}
		all = append(append(all, before...), file)
	}
	return all
}
