package yamldoc

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// InUTF8 converts PowerShell's redirected output, which is UTF-16 and begins with a byte order mark.
func InUTF8(text []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return text
	}
	var units []uint16
	for at := 2; at+1 < len(text); at += 2 {
		units = append(units, order.Uint16(text[at:]))
	}
	return []byte(string(utf16.Decode(units)))
}
