package kea

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// definition is how the data of an option are encoded; an empty form has no counterpart.
type definition struct {
	code  int
	form  string
	array bool
}

// standard are Kea's own definitions of options that nobody else's file has by these names (Kea 2.2, src/lib/dhcp/std_option_defs.h). Those that
// are missing here are records and lists of names.
var standard = map[string]definition{
	"path-mtu-aging-timeout": {24, draft.Long, false}, "path-mtu-plateau-table": {25, draft.Short, true}, "perform-mask-discovery": {29, draft.Bool, false},
	"mask-supplier": {30, draft.Bool, false}, "tcp-keepalive-garbage": {39, draft.Bool, false}, "streettalk-directory-assistance-server": {76, draft.Addresses, true},
	"nds-servers": {85, draft.Addresses, true}, "nds-tree-name": {86, draft.String, false}, "nds-context": {87, draft.String, false},
	"bcms-controller-address": {89, draft.Addresses, true}, "client-last-transaction-time": {91, draft.Long, false}, "associated-ip": {92, draft.Addresses, true},
	"client-system": {93, draft.Short, true}, "uap-servers": {98, draft.String, false}, "v6-only-preferred": {108, draft.Long, false},
	"netinfo-server-address": {112, draft.Addresses, true}, "netinfo-server-tag": {113, draft.String, false}, "auto-config": {116, draft.Octet, false},
	"name-service-search": {117, draft.Short, true}, "subnet-selection": {118, draft.Addresses, false}, "pana-agent": {136, draft.Addresses, true},
	"capwap-ac-v4": {138, draft.Addresses, true},
}

// types of option-def (Kea Administrator Reference Manual, "List of standard DHCP option types").
var types = map[string]string{
	"binary": draft.Hex, "boolean": draft.Bool, "ipv4-address": draft.Addresses, "string": draft.String,
	"uint8": draft.Octet, "uint16": draft.Short, "uint32": draft.Long, "int8": draft.Octet, "int16": draft.Short, "int32": draft.Long,
}

func (r *reader) define(d node) {
	number, name := d.get("code"), d.get("name").text
	code, is := number.integer()
	if number.float { // refused says so
		return
	}
	if !is || name == "" || d.get("space").text != "" && d.get("space").text != "dhcp4" {
		r.Leave(d.named(`"option-def": `+name), "options of a space of their own have no counterpart")
		return
	}
	r.defined[name] = definition{code, types[d.get("type").text], d.get("array").text == "true"}
}

// definition of an option by its name or code; empty if neither the file nor Kea defines it.
func (r *reader) definition(name string, code int) definition {
	for _, defined := range []map[string]definition{r.defined, standard} {
		if d, is := defined[name]; is {
			return d
		}
		for _, d := range defined {
			if d.code == code {
				return d
			}
		}
	}
	return definition{}
}

// encodes sets the form of an option's values, of which an array of numbers is written in hex.
func (d definition) encodes(o *draft.Option) {
	o.Form = d.form
	size := map[string]int{draft.Octet: 8, draft.Short: 16, draft.Long: 32}[d.form]
	if !d.array || size == 0 {
		return
	}
	var raw []byte
	for _, v := range o.Values {
		n, err := strconv.ParseUint(v, 0, size)
		if err != nil {
			o.Form = ""
			return
		}
		raw = append(raw, binary.BigEndian.AppendUint32(nil, uint32(n))[4-size/8:]...)
	}
	o.Form, o.Values = draft.Hex, []string{hex.EncodeToString(raw)}
}
