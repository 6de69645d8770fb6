package bfcfg

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

//go:embed content
var content embed.FS

// put adds the rows of a part that are for this DPU.
func (s Source) put(config *types.Config, part string, rows []row) {
	for _, r := range rows {
		if !s.gets(r) {
			continue
		}
		if text := s.text(part, r); r.is(unit) {
			config.Systemd.Units = append(config.Systemd.Units, types.Unit{Name: path.Base(r.path), Enabled: ptr.To(true), Contents: &text})
		} else {
			putFile(config, r.path, r.mode, encode(r, text))
		}
	}
}

func (s Source) gets(r row) bool {
	switch {
	case r.is(trusted) && s.ZeroTrust, r.is(zeroTrust) && !s.ZeroTrust, r.is(jumbo) && s.mtu() == 1500, r.is(hugepages) && s.hugepages == "":
		return false
	}
	return true
}

func (s Source) mtu() int {
	if s.MTU == 0 {
		return 1500
	}
	return s.MTU
}

// text of a row, with the settings that are ours to fill in.
func (s Source) text(part string, r row) string {
	name := "content/" + part + r.path
	if r.is(zeroTrust) {
		name += ".zero-trust"
	}
	text, err := content.ReadFile(name)
	if err != nil {
		panic(err) // a test has read them all
	}
	return strings.NewReplacer("@MTU@", strconv.Itoa(s.mtu()), "@REGISTRY@", strings.TrimRight(s.Registry, "/"), "@HUGEPAGES@", s.hugepages, "@PAUSE@", s.pause).Replace(string(text))
}

// encode makes the contents of a file from its text: in form of gzip and base64, in which DPF's templating finds nothing to fill in, or
// such that it does.
func encode(r row, text string) types.Resource {
	switch {
	case r.is(base64ByDPF):
		return types.Resource{Source: ptr.To("data:;base64," + strings.TrimSpace(text))}
	case r.is(plain):
		return types.Resource{Source: ptr.To("data:," + percentEncoded(text))}
	}
	return packed([]byte(text))
}

// zippers are used again, since each has 800 KiB.
var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // fails for unknown levels only
	return w
}}

func packed(text []byte) types.Resource {
	var zipped bytes.Buffer
	w := zippers.Get().(*gzip.Writer)
	defer zippers.Put(w)
	w.Reset(&zipped)
	_, _ = w.Write(text) // a buffer takes all
	_ = w.Close()
	return types.Resource{Source: ptr.To("data:;base64," + base64.StdEncoding.EncodeToString(zipped.Bytes())), Compression: ptr.To("gzip")}
}

var encodedAction = regexp.MustCompile(`%7B%7B.*?%7D%7D`)

// percentEncoded encodes a text, but not the actions of DPF's template in it.
func percentEncoded(text string) string {
	return encodedAction.ReplaceAllStringFunc(url.PathEscape(text), func(action string) string {
		action, _ = url.PathUnescape(action) // it was just escaped
		return action
	})
}

// putFile replaces the file of that path, or adds one.
func putFile(config *types.Config, at string, mode int, contents types.Resource) {
	file := types.File{
		Node:          types.Node{Path: at, Overwrite: ptr.To(true)},
		FileEmbedded1: types.FileEmbedded1{Mode: &mode, Contents: contents},
	}
	if i := fileAt(config, at); i >= 0 {
		config.Storage.Files[i] = file
	} else {
		config.Storage.Files = append(config.Storage.Files, file)
	}
}

func fileAt(config *types.Config, at string) int {
	return slices.IndexFunc(config.Storage.Files, func(f types.File) bool { return f.Path == at })
}
