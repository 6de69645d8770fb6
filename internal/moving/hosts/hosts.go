// Package hosts reads hosts files (hosts(5)), whose names dnsmasq answers.
package hosts

import (
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// Read adds the names of files.
func Read(site *draft.Site, files []draft.File) {
	for _, file := range files {
		if site.Begins(file) { // a configuration may include it
			site.HasHosts = true
			names(site, file)
		}
	}
}

// Included adds the names of a file that a configuration includes.
func Included(site *draft.Site, file draft.File) {
	if site.Begins(file) {
		names(site, file)
	}
}

// names of one file. What is about the machine itself, its loopback and link-local addresses, is nobody else's.
func names(site *draft.Site, file draft.File) {
	number := 0
	for whole := range strings.Lines(file.Text) {
		number++
		said, _, _ := strings.Cut(whole, "#")
		words := strings.Fields(said)
		if len(words) == 0 {
			continue
		}
		at := draft.Line{File: file.Name, Number: number, Text: said}
		ip, err := netip.ParseAddr(words[0])
		switch {
		case err != nil || len(words) < 2:
			site.Leave(at, "it is not an address with names")
			continue
		case ip.IsLoopback() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || ip.Zone() != "" || ip.Is6() && !ip.IsGlobalUnicast():
			continue
		}
		for _, name := range words[1:] {
			site.HostRecord(at, name, ip)
		}
	}
}
