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

// The configuration manual, §5.2: what default-server says holds for the servers behind it, unless they take it back, and that of defaults for all.
func TestAServerIsNotAskedInAnotherWay(t *testing.T) {
	for options, changes := range map[string]string{
		"send-proxy-v2-ssl": "send-proxy-v2-ssl", "ssl verify none": "ssl", "send-proxy": "send-proxy", "disabled": "disabled", "weight 0": "weight 0", "no-ssl": "", "weight 10": "", "check": "",
	} {
		for place, text := range map[string]string{
			"server":   "defaults\n  mode tcp\nlisten a\n  bind :5000\n  server s 10.0.0.11:5000 OPTIONS\n",
			"section":  "defaults\n  mode tcp\nlisten a\n  bind :5000\n  default-server OPTIONS\n  server s 10.0.0.11:5000\n",
			"defaults": "defaults\n  mode tcp\n  default-server OPTIONS\nlisten a\n  bind :5000\n  server s 10.0.0.11:5000\n",
		} {
			g := NewWithT(t)
			infra, left := fromOne(t, "haproxy", strings.Replace(text, "OPTIONS", options, 1))
			if changes == "" {
				g.Expect(infra).To(ContainSubstring("10.0.0.11:5000\n"), "%s in %s", options, place)
				continue
			}
			g.Expect(infra).NotTo(ContainSubstring("10.0.0.11"), "%s in %s", options, place)
			g.Expect(left).To(MatchRegexp("FILE:[0-9]: server s .*: "+changes+": the proxy passes on connections as they are"), "%s in %s", options, place)
		}
	}
	infra, left := fromOne(t, "haproxy", `listen a
  mode tcp
  bind :5000
  server before 10.0.0.11:5000 weight 10
  default-server ssl
  server behind 10.0.0.12:5000
  server back 10.0.0.13:5000 no-ssl
`)
	NewWithT(t).Expect(infra).To(ContainSubstring("      addresses:\n      - 10.0.0.11:5000\n      - 10.0.0.13:5000\n"))
	NewWithT(t).Expect(left).To(ContainSubstring("FILE:4: server before 10.0.0.11:5000 weight 10: weight 10: the proxy gives each target its turn\n"))
}

func TestWhatIsDisabledIsLeft(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "haproxy", `defaults
  mode tcp
  disabled
listen a
  bind :5000
  server s 10.0.0.11:5000
frontend b
  enabled
  bind :5001
  default_backend c
backend c
  server s 10.0.0.12:5000
`)
	g.Expect(infra).NotTo(ContainSubstring("extraEndpoints"))
	g.Expect(left).To(And(ContainSubstring("FILE:4: listen a: it is disabled; all that stands in it is left, too\n"), ContainSubstring(": the backend c is disabled\n")))
}

// The configuration manual, §2.4: only one branch counts, which the file alone does not say.
func TestABranchIsNotTakenForAllOfAFile(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "haproxy", `listen a
  mode tcp
  bind :5000
  .if defined(OLD)
  .if feature(OPENSSL)
  bind :5001
  .endif
  server s 10.0.0.11:5000
  .else
  server s 10.0.0.12:5000
  .endif
  .notice "started"
  server t 10.0.0.13:5000
  server u nowhere.example.com:5000
  bind :5002
`)
	g.Expect(infra).To(And(ContainSubstring("10.0.0.13:5000\n"), Not(ContainSubstring("10.0.0.11")), Not(ContainSubstring("10.0.0.12")), Not(ContainSubstring("5001"))))
	g.Expect(left).To(ContainSubstring("FILE:4: .if defined(OLD): whether this holds is decided where HAProxy starts; all up to its .endif is left, too"))
	g.Expect(strings.Count(left, ".if ")).To(Equal(1))
	g.Expect(strings.Count(left, "no file says the address of nowhere.example.com")).To(Equal(1), "though two ports lead there")
}
