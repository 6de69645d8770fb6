package kea

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// options are data by name or code; in hex if csv-format is false.
func (r *reader) options(into *[]draft.Option, all node) {
	for _, n := range all.items {
		name := n.get("name").text
		at := n.named(`"option-data": ` + name + n.get("code").text + " " + n.get("data").text)
		code, is := n.get("code").integer()
		if !is {
			code = draft.ISCOption(name)
		}
		defined := r.definition(name, code)
		if code == 0 {
			code = defined.code
		}
		space := n.get("space").text
		switch {
		case space != "" && space != "dhcp4":
			r.Leave(at, "options of a space of their own have no counterpart")
			continue
		case code == 0:
			r.Leave(at, "nobody here knows the option %s: write it into dhcp.options by its code", name)
			continue
		case !n.get("client-classes").null:
			r.Leave(at, ofSome)
			continue
		}
		made := draft.Option{Line: at, Code: code, Values: separated(n.get("data").text)}
		defined.encodes(&made)
		if n.get("csv-format").text == "false" {
			made.Form, made.Values = draft.Hex, []string{strings.ReplaceAll(n.get("data").text, " ", "")}
			made.Raw = true
			if raw, err := hex.DecodeString(strings.ReplaceAll(made.Values[0], ":", "")); code == 121 && (err != nil || !made.SetRoutes(raw)) {
				r.Leave(at, "its routes cannot be read")
				continue
			}
		}
		*into = append(*into, made)
	}
}

// separated are the values between commas; a backslash before one makes it a part of the value.
func separated(data string) (all []string) {
	var value strings.Builder
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] == '\\' && i+1 < len(data) && data[i+1] == ',':
			value.WriteByte(',')
			i++
		case data[i] == ',':
			all = append(all, strings.TrimSpace(value.String()))
			value.Reset()
		default:
			value.WriteByte(data[i])
		}
	}
	return append(all, strings.TrimSpace(value.String()))
}

// hardware is an Ethernet address in hex.
var hardware = regexp.MustCompile(`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`)

func (r *reader) reservations(all node) {
	for _, n := range all.items {
		made := draft.Reservation{Line: n.named(`"reservations": ` + n.get("ip-address").text)}
		known := true
		for _, f := range n.fields {
			switch f.name {
			case "hw-address":
				made.MAC = colons(f.value.text)
				known = known && hardware.MatchString(made.MAC)
			case "client-id":
				made.ClientID = colons(f.value.text)
			case "ip-address":
				made.Address(f.value.text)
			case "hostname":
				made.Host = f.value.text
			case "duid", "circuit-id", "flex-id":
				known = false
			case "option-data", "client-classes", "boot-file-name", "server-hostname", "next-server":
				if len(f.value.items) > 0 || f.value.text != "" {
					r.Leave(r.at(f), ofSome)
				}
			default:
				r.other(f)
			}
		}
		if !known {
			r.Leave(made.Line, "a reservation is for an Ethernet address or a client identifier")
			continue
		}
		r.Reservations = append(r.Reservations, made)
	}
}

// colons puts colons between octets that are written without, with spaces, or in quotes as text (Kea: src/lib/util/strutil.cc,
// decodeFormattedHexString).
func colons(text string) string {
	if quoted, is := strings.CutPrefix(text, "'"); is {
		var all []string
		for _, b := range []byte(strings.TrimSuffix(quoted, "'")) {
			all = append(all, strconv.FormatUint(uint64(b)+0x100, 16)[1:])
		}
		return strings.Join(all, ":")
	}
	text = strings.TrimPrefix(strings.ToLower(text), "0x")
	all := strings.FieldsFunc(text, func(c rune) bool { return c == ':' || c == ' ' })
	if len(all) > 1 {
		return draft.Padded(strings.Join(all, ":"))
	}
	if len(text)%2 > 0 {
		return text
	}
	all = nil
	for i := 0; i < len(text); i += 2 {
		all = append(all, text[i:i+2])
	}
	return strings.Join(all, ":")
}
