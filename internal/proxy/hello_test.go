package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// hello returns the ClientHello of Go's client, as one record.
func hello(t *testing.T, serverName string, protocols ...string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: serverName, NextProtos: protocols}).Handshake() }() // nobody answers it
	defer server.Close()
	g := NewWithT(t)
	header := make([]byte, 5)
	g.Expect(server.SetReadDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
	record := &bytes.Buffer{}
	_, err := server.Read(header)
	g.Expect(err).NotTo(HaveOccurred())
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	for read := 0; read < len(body); {
		n, err := server.Read(body[read:])
		g.Expect(err).NotTo(HaveOccurred())
		read += n
	}
	record.Write(header)
	record.Write(body)
	return record.Bytes()
}

// inRecords splits a hello's one record into several.
func inRecords(record []byte, size int) (out []byte) {
	for body := record[5:]; len(body) > 0; {
		n := min(size, len(body))
		out = append(out, record[0], record[1], record[2])
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, body[:n]...)
		body = body[n:]
	}
	return out
}

// A connection reaches exactly its route, or the port's catch-all, or is closed.
func TestHellosThatMeanToEvade(t *testing.T) {
	named, other, only, both := newTarget(t, "named"), newGreeter(t), freePort(t), freePort(t)
	newLab(t,
		route("named", only, named, "named.example.com"),
		route("also-named", both, named, "named.example.com"),
		catchAll(route("other", both, other)),
	)
	plain := hello(t, "named.example.com")
	dotted := bytes.Replace(hello(t, "named.example.comx"), []byte("named.example.comx"), []byte("named.example.com."), 1)
	var long []string
	for i := range 80 {
		long = append(long, fmt.Sprintf("%d%s", i, strings.Repeat("x", 220)))
	}
	for name, c := range map[string]struct {
		bytes  []byte
		pieces int // how many bytes each write has
		only   bool
		both   bool
	}{
		"a plain hello":             {plain, len(plain), true, true},
		"byte by byte":              {plain, 1, true, true},
		"in many records":           {inRecords(plain, 50), 1 << 16, true, true},
		"with a trailing dot":       {dotted, 1 << 16, false, true},
		"more than 16 KiB":          {hello(t, "named.example.com", long...), 1 << 16, false, false},
		"no hello at all":           {[]byte("SSH-2.0-OpenSSH_9.9\r\n"), 1 << 16, false, false},
		"plain HTTP":                {[]byte("GET / HTTP/1.1\r\nHost: named.example.com\r\n\r\n"), 1 << 16, false, false},
		"a hello cut in the middle": {append(bytes.Clone(plain[:60]), make([]byte, 400)...), 1 << 16, false, false},
		"a record of another type":  {append([]byte{23}, plain[1:]...), 1 << 16, false, false},
		"an alert":                  {[]byte{21, 3, 1, 0, 2, 2, 0}, 1 << 16, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(answered(t, only, c.bytes, c.pieces)).To(Equal(c.only), "on a port without a catch-all")
			g.Expect(answered(t, both, c.bytes, c.pieces)).To(Equal(c.both), "on a port with a catch-all")
		})
	}
}

// newGreeter makes a target that sends first, whatever the client sends.
func newGreeter(t *testing.T) target {
	t.Helper()
	return newPlainTarget(t, "greeter", func(conn net.Conn) {
		_, _ = conn.Write([]byte("hi"))       // fails for a health check, which is gone by now
		_, _ = conn.Read(make([]byte, 1<<15)) // a close with unread bytes would be a reset
	})
}

// answered says whether a target said anything before the connection ended.
func answered(t *testing.T, port v1alpha1.Port, message []byte, pieces int) bool {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(vip, fmt.Sprint(port)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	for len(message) > 0 {
		n := min(pieces, len(message))
		if _, err := conn.Write(message[:n]); err != nil {
			break // closed already
		}
		message = message[n:]
	}
	NewWithT(t).Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	n, err := conn.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("neither answered nor closed")
	}
	return n > 0
}
