package iscdhcpd

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/braces"
	"github.com/cldmnky/oooi/internal/moving/draft"
)

// definition of an option that the file makes up.
type definition struct {
	code  int
	form  string
	array bool // of integers, each of which is an octet
}

// sends is a statement that an option says, too.
func sends(code int) func(*reader, scope, braces.Statement) {
	return func(r *reader, in scope, s braces.Statement) {
		r.add(in, draft.Option{Line: s.Line, Code: code, Values: s.Values(1)})
	}
}

func (r *reader) add(in scope, o draft.Option) {
	if in.options == nil {
		r.Leave(o.Line, ofSome)
		return
	}
	*in.options = append(*in.options, o)
}

func (r *reader) option(in scope, s braces.Statement) {
	if len(s.Words) < 3 {
		r.Leave(s.Line, "it has no value")
		return
	}
	name := strings.ToLower(s.Words[1].Text)
	switch {
	case s.Words[2].Text == "code" && !s.Words[2].Quoted:
		r.define(name, s)
		return
	case s.Words[2].Text == "=" && !s.Words[2].Quoted, name == "space" || strings.Contains(name, "."):
		r.Leave(s.Line, "options that are computed, or have a space of their own, have no counterpart: write dhcp.options")
		return
	}
	o := draft.Option{Line: s.Line, Code: draft.ISCOption(name), Values: s.Values(2)}
	if defined, is := r.defined[name]; is && !defined.encodes(&o, s.Words[2:]) {
		r.Leave(s.Line, "its values are no octets: write it into dhcp.options by its code, %d", o.Code)
		return
	}
	if o.Code == 0 {
		r.Leave(s.Line, "nobody here knows the option %s: write it into dhcp.options by its code", name)
		return
	}
	if o.Code == 33 { // pairs, with a space between
		o.Values = strings.Fields(strings.Join(o.Values, " "))
	}
	r.add(in, o)
}

// encodes sets an option's code and form, which count before those that dhcpd knows by itself (common/parse.c, parse_option_code_definition); false if its
// values are none.
func (d definition) encodes(o *draft.Option, words []braces.Word) bool {
	o.Code, o.Form = d.code, d.form
	if o.Form == draft.Hex {
		octetsOrText(o, words)
	}
	if d.array && !octets(o) {
		return false
	}
	o.Defined()
	return true
}

// forms by the names of dhcp-options(5).
var forms = map[string]string{
	"ip-address": draft.Addresses, "text": draft.String, "string": draft.Hex, "boolean": draft.Bool,
	"integer 8": draft.Octet, "integer 16": draft.Short, "integer 32": draft.Long,
}

// define is option NAME code NUMBER = [array of] TYPE.
func (r *reader) define(name string, s braces.Statement) {
	code, err := strconv.Atoi(s.Words[min(3, len(s.Words)-1)].Text)
	var kind []string
	for _, w := range s.Words[min(5, len(s.Words)):] {
		if w.Text != "signed" && w.Text != "unsigned" {
			kind = append(kind, strings.ToLower(w.Text))
		}
	}
	array := len(kind) > 2 && kind[0] == "array" && kind[1] == "of"
	if array {
		kind = kind[2:]
	}
	form := forms[strings.Join(kind, " ")]
	if err != nil || form == "" || array && form != draft.Octet && form != draft.Addresses {
		r.Leave(s.Line, "options of this type have no counterpart: write what it says into dhcp.options with type Hex")
		return
	}
	r.defined[name] = definition{code: code, form: form, array: array && form == draft.Octet}
}

// octets are the values of an array.
func octets(o *draft.Option) bool {
	var raw []byte
	for _, v := range o.Values {
		n, err := strconv.ParseUint(v, 10, 8)
		if err != nil {
			return false
		}
		raw = append(raw, byte(n))
	}
	if o.Code == 121 {
		return o.SetRoutes(raw)
	}
	o.Form, o.Values = draft.Hex, []string{hex.EncodeToString(raw)}
	return true
}

// octetsOrText is a value of type string: octets in hex, or text in quotes (dhcp-options(5), "string").
func octetsOrText(o *draft.Option, words []braces.Word) {
	if len(words) == 1 && words[0].Quoted {
		o.Form = draft.String
		return
	}
	o.Raw = true
	for i := range o.Values {
		o.Values[i] = draft.Padded(o.Values[i])
	}
}

var hardware = regexp.MustCompile(`^[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}$`)

// host is a reservation, if it says whose and which address.
func (r *reader) host(in scope, s braces.Statement) {
	made := draft.Reservation{Line: s.Line}
	if in.declared && len(s.Words) > 1 {
		made.Host = s.Words[1].Text
	}
	for _, inner := range s.Block {
		switch {
		case inner.Unread != nil:
			r.NotRead(inner.Line, inner.Unread, "--isc-dhcpd")
		case inner.Is("hardware", "ethernet") && len(inner.Words) == 3 && hardware.MatchString(inner.Words[2].Text):
			made.MAC = draft.Padded(inner.Words[2].Text)
		case inner.Is("fixed-address"):
			r.fixed(&made, inner)
		case inner.Is("option", "host-name"):
			made.Host = strings.Join(inner.Values(2), "")
		case inner.Is("option", "dhcp-client-identifier") && len(inner.Words) == 3:
			made.ClientID = identifier(inner.Words[2])
		default:
			r.Leave(inner.Line, ofSome)
		}
	}
	if made.MAC != "" && made.ClientID != "" {
		r.Leave(s.Line, "a reservation has the MAC address, or the client identifier: here it has the first")
		made.ClientID = ""
	}
	r.Reservations = append(r.Reservations, made)
}

// fixed has addresses, or names that have them; a reservation has one.
func (r *reader) fixed(made *draft.Reservation, s braces.Statement) {
	for i, v := range s.Values(1) {
		if i > 0 {
			r.Leave(s.Line, "a reservation has one address: %s is left", v)
			continue
		}
		made.Address(v)
	}
}

// identifier is a client identifier in hex: it is written so, or as its octets.
func identifier(w braces.Word) string {
	if !w.Quoted {
		return draft.Padded(w.Text)
	}
	var all []string
	for _, b := range []byte(w.Text) {
		all = append(all, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(all, ":")
}
