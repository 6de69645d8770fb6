// Package leaselog keeps leases in one file: a write-ahead log of CRC-framed records, synced before a promise is made and
// compacted by rename (docs/adr). It is the store of a server without a cluster, and elsewhere the copy of the cluster's
// leases that outlives a container.
package leaselog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/netip"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// magic begins every file; a later format gets another one.
const magic = "oooi leases 1\n"

// entry is the content of a frame: a record with its past, an address that has none any more, the clock, or that the file was closed (as first entry: that its
// writer closes files).
type entry struct {
	Record *lease.Record `json:"record,omitempty"`
	Past   []lease.Past  `json:"past,omitempty"` // of the record's address
	Gone   string        `json:"gone,omitempty"`
	Clock  *clock.Saved  `json:"clock,omitempty"`
	Closed bool          `json:"closed,omitempty"`

	at span // of its frame in the file that was read
}

// span is a part of the file.
type span struct{ from, to int }

// address is the address of the entry; invalid if it has none.
func (e entry) address() netip.Addr {
	if e.Record != nil {
		return e.Record.IP
	}
	ip, _ := netip.ParseAddr(e.Gone) // the CRC was right: what does not parse was never written
	return ip
}

// A frame has the length and the CRC-32C of its payload, both big endian, then the payload. The CRC covers the length.
const (
	frameHeader = 8
	maxPayload  = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendFrame(out []byte, e entry) ([]byte, error) {
	payload, err := json.Marshal(e)
	if err != nil {
		return out, fmt.Errorf("encoding a lease: %w", err)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	out = binary.BigEndian.AppendUint32(out, checksum(payload))
	return append(out, payload...), nil
}

func checksum(payload []byte) uint32 {
	length := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, payload)
}

// parse gives all whole frames to take. After damage it looks for the next whole one: every lease that can still be read is a promise that must be
// kept. damaged are the parts that were skipped, a torn last write among them.
func parse(content []byte, take func(entry)) (damaged []span) {
	at := 0
	if bytes.HasPrefix(content, []byte(magic)) {
		at = len(magic)
	}
	for at < len(content) {
		e, size := readFrame(content[at:])
		if size == 0 {
			next := at + nextFrame(content[at:])
			damaged = appendSpan(damaged, span{at, next})
			at = next
			continue
		}
		e.at = span{at, at + size}
		at += size
		take(e)
	}
	return damaged
}

// appendSpan joins a span to the last one if it follows it.
func appendSpan(all []span, s span) []span {
	if last := len(all) - 1; last >= 0 && all[last].to == s.from {
		all[last].to = s.to
		return all
	}
	return append(all, s)
}

// opening begins every payload. After damage it marks where to try the next frame, since a checksum at each octet would take minutes.
var opening = []byte(`{"`)

// nextFrame is where the next frame may begin, after the first octet; the end if nowhere.
func nextFrame(octets []byte) int {
	if len(octets) <= frameHeader {
		return len(octets)
	}
	at := bytes.Index(octets[frameHeader+1:], opening)
	if at < 0 {
		return len(octets)
	}
	return at + 1
}

// readFrame reads the frame at the start of octets; size 0 means that there is none.
func readFrame(octets []byte) (e entry, size int) {
	if len(octets) < frameHeader {
		return e, 0
	}
	length := binary.BigEndian.Uint32(octets)
	if length > maxPayload || int(length) > len(octets)-frameHeader {
		return e, 0
	}
	payload := octets[frameHeader : frameHeader+int(length)]
	if binary.BigEndian.Uint32(octets[4:]) != checksum(payload) || json.Unmarshal(payload, &e) != nil {
		return e, 0
	}
	return e, frameHeader + int(length)
}
