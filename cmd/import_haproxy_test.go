package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// fromOne imports one file of a kind, which messages call FILE.
func fromOne(t *testing.T, kind, text string) (infra, left string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	NewWithT(t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	infra, left, _ = imported("", "-f", "testdata/moving/infra.yaml", "--"+kind, file)
	return infra, strings.ReplaceAll(left, file, "FILE")
}

// The configuration manual, §4: a section has the defaults that it names, else the last ones.
func TestASectionHasTheDefaultsThatItNames(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "haproxy", `defaults tcpd
  mode tcp
defaults httpd
  mode http
defaults derived from tcpd
  timeout client 10s
frontend a from tcpd
  bind :5000
  default_backend b
frontend web from httpd
  bind :8080
  default_backend b
frontend c
  bind :5001
  default_backend b
backend b from tcpd
  server s 192.168.77.50:5000
`)
	g.Expect(infra).To(And(ContainSubstring("port: 5000\n"), ContainSubstring("port: 5001\n"), Not(ContainSubstring("port: 8080\n"))))
	g.Expect(left).To(And(ContainSubstring("FILE:10: frontend web from httpd: it takes connections apart (mode http)"), Not(ContainSubstring("FILE:7: ")), Not(ContainSubstring("FILE:13: "))))
}

// The configuration manual, §5.2: without a port, a server is asked at the client's, and with a sign before it, at the one that many above or below.
func TestAServersPortMayBeRelativeToTheClients(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "haproxy", `listen a
  mode tcp
  bind :5000
  server r1 10.0.0.11:+1000
  server r2 10.0.0.12:-1000
  server r3 10.0.0.13
  server r4 ipv4@10.0.0.14:5005
  server r5 10.0.0.15:+61000
  server r6 unix@/run/a.sock
`)
	g.Expect(infra).To(ContainSubstring("      addresses:\n      - 10.0.0.11:6000\n      - 10.0.0.12:4000\n      - 10.0.0.13:5000\n      - 10.0.0.14:5005\n"))
	g.Expect(left).To(And(
		ContainSubstring("FILE:8: server r5 10.0.0.15:+61000: 10.0.0.15:+61000 has no port 66000, to which connections to port 5000 lead\n"),
		ContainSubstring("FILE:9: server r6 unix@/run/a.sock: unix@/run/a.sock is no address with a port, or without one for the client's\n")))
}
