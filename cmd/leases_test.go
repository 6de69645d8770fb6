package cmd

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

// poolFiles are a configuration and a lease file that does not exist yet.
type poolFiles struct {
	*WithT
	dir string
}

func newPoolFiles(t *testing.T) poolFiles {
	p := poolFiles{NewWithT(t), t.TempDir()}
	p.writes("dhcp.yaml", `spec:
  networkConfig: {cidr: 192.168.77.0/24, serverIP: 192.168.77.2}
  leaseConfig: {rangeStart: 192.168.77.100, rangeEnd: 192.168.77.150, leaseTime: 1h}
  reservations: [{ip: 192.168.77.150, mac: "52:54:00:00:00:99"}]
`)
	return p
}

func (p poolFiles) writes(name, content string) string {
	path := filepath.Join(p.dir, name)
	p.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// leases runs the command on the lease file.
func (p poolFiles) leases(args ...string) (out, told string, err error) {
	var stdout, stderr bytes.Buffer
	root := Root()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(append(append([]string{"leases"}, args...), "--lease-file", filepath.Join(p.dir, "leases"), "--config-file", filepath.Join(p.dir, "dhcp.yaml")))
	err = root.Execute()
	return stdout.String(), stderr.String(), err
}

func TestLeasesOfAnotherServerAreTakenOver(t *testing.T) {
	p := newPoolFiles(t)
	soon := time.Now().Add(90 * time.Minute).Unix()
	file := p.writes("dnsmasq.leases", fmt.Sprintf(`%[1]d 52:54:00:00:00:01 192.168.77.100 worker-1 01:52:54:00:00:00:01
0 52:54:00:00:00:02 192.168.77.101 * *
%[1]d 52:54:00:00:00:03 192.168.78.5 * *
%[1]d 52:54:00:00:00:04 192.168.77.2 * *
%[1]d 52:54:00:00:00:05 192.168.77.150 * *
1500000000 52:54:00:00:00:06 192.168.77.103 * *
%[1]d 52:54:00:00:00:07 192.168.77.20 * *
soon
`, soon))
	const refused = `FILE:8: a lease of dnsmasq has five words: time, hardware address, address, name, client identifier
FILE:4: 192.168.77.2 of 52:54:00:00:00:04: it is a server's, a gateway's, or the network's own: the client gets another address when it asks oooi
FILE:2: 192.168.77.101 of 52:54:00:00:00:02: its lease never ends, so that the client will not ask oooi: reserve it, infraComponents.dhcp.reservations: [{ip: 192.168.77.101, mac: 52:54:00:00:00:02}]
FILE:5: 192.168.77.150 of 52:54:00:00:00:05: it is reserved for 52:54:00:00:00:99: the client gets another address when it asks oooi
FILE:3: 192.168.78.5 of 52:54:00:00:00:03: it is outside 192.168.77.0/24: the client gets another address when it asks oooi
`
	for _, run := range []struct{ flag, says string }{
		{"--dry-run=true", "2 leases would be taken over, 0 are there already, 1 have ended\n"},
		{"--dry-run=false", "2 leases taken over, 0 are there already, 1 have ended\n"},
		{"--dry-run=false", "0 leases taken over, 2 are there already, 1 have ended\n"},
	} {
		out, told, err := p.leases("import", file, "--from", "dnsmasq", run.flag)
		p.Expect(err).To(MatchError("5 lines were not taken over; see above"))
		p.Expect(out).To(Equal(run.says))
		p.Expect(bytes.ReplaceAll([]byte(told), []byte(file), []byte("FILE"))).To(BeEquivalentTo(refused))
	}

	out, _, err := p.leases("list")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(Equal(`IP              CLIENT             HOSTNAME  VM  STATE  ENDS    SERVER
192.168.77.20   52:54:00:00:00:07  -         -   Bound  in 89m  -
192.168.77.100  52:54:00:00:00:01  worker-1  -   Bound  in 89m  -
`))

	other := p.writes("other.leases", fmt.Sprintf("%d 52:54:00:00:00:08 192.168.77.100 * *\n", soon))
	_, told, err := p.leases("import", other, "--from", "dnsmasq")
	p.Expect(err).To(HaveOccurred())
	p.Expect(told).To(HaveSuffix(":1: 192.168.77.100 of 52:54:00:00:00:08: oooi has a lease of it already, Bound to 52:54:00:00:00:01: release that one if it is wrong (oooi leases release 192.168.77.100)\n"))
}

// Kea moves what it has written to other files, and goes on with an empty one. A dry run writes nothing, and says what a real one would.
func TestWhatLiesBesideKeasFileIsRead(t *testing.T) {
	p := newPoolFiles(t)
	const columns = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id\n"
	row := func(ip, mac string, lifetime int64) string {
		return fmt.Sprintf("%s,%s,,%d,%d,1,0,0,,0,{ \"a\": 1 },0\n", ip, mac, lifetime, time.Now().Unix()+lifetime)
	}
	file := p.writes("kea-leases4.csv", columns+row("192.168.77.100", "52:54:00:00:00:01", 0))
	p.writes("kea-leases4.csv.2", columns+row("192.168.77.100", "52:54:00:00:00:01", 3600)+row("192.168.77.101", "52:54:00:00:00:02", 3600))
	p.writes("kea-leases4.csv.1", columns+row("192.168.77.101", "52:54:00:00:00:03", 3600))
	for range 2 {
		out, told, err := p.leases("import", file, "--from", "kea", "--dry-run")
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(told).To(Equal(file + ".2 and " + file + ".1 read first: " + file + " has only what changed since\n"))
		p.Expect(out).To(Equal("1 leases would be taken over, 0 are there already, 1 have ended\n"))
	}
	_, _, err := p.leases("import", file, "--from", "kea")
	p.Expect(err).NotTo(HaveOccurred())
	out, _, err := p.leases("list")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(ContainSubstring("192.168.77.101  52:54:00:00:00:03"))
	p.Expect(out).NotTo(ContainSubstring("192.168.77.100"))
	out, _, err = p.leases("import", file, "--from", "kea", "--dry-run")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(Equal("0 leases would be taken over, 1 are there already, 1 have ended\n"))

	p.writes("kea-leases4.csv.completed", columns+row("192.168.77.102", "52:54:00:00:00:04", 3600))
	out, told, err := p.leases("import", file, "--from", "kea", "--dry-run")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(told).To(HavePrefix(file + ".completed read first: "))
	p.Expect(out).To(Equal("1 leases would be taken over, 0 are there already, 1 have ended\n"))
}

func TestALeaseIsShownReleasedAndCarriedElsewhere(t *testing.T) {
	p := newPoolFiles(t)
	ends := time.Now().Add(2 * time.Hour).Truncate(time.Second).UTC()
	_, _, err := p.leases("import", p.writes("a", fmt.Sprintf("%d 52:54:00:00:00:01 192.168.77.100 worker-1 *\n", ends.Unix())), "--from", "dnsmasq")
	p.Expect(err).NotTo(HaveOccurred())
	for _, who := range []string{"192.168.77.100", "52:54:00:00:00:01", "worker-1"} {
		out, _, err := p.leases("show", who)
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(out).To(Equal(`Address:             192.168.77.100
Hardware address:    52:54:00:00:00:01
Host name:           worker-1
State:               Bound
Told to the client:  until ` + ends.Format(time.RFC3339) + `
Another client:      after ` + ends.Add(10*time.Minute).Format(time.RFC3339) + "\n"))
	}

	exported, _, err := p.leases("export")
	p.Expect(err).NotTo(HaveOccurred())
	elsewhere := newPoolFiles(t)
	out, _, err := elsewhere.leases("import", elsewhere.writes("leases.jsonl", exported), "--from", "oooi")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(HavePrefix("1 leases taken over"))
	again, _, err := elsewhere.leases("export")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(again).To(Equal(exported))

	daemon, err := leaselog.Open(filepath.Join(p.dir, "leases"), slog.Default(), func(error) {})
	p.Expect(err).NotTo(HaveOccurred())
	_, _, err = p.leases("release", "192.168.77.100")
	p.Expect(err).To(MatchError(ContainSubstring("another oooi dhcp uses this lease file (resource temporarily unavailable); stop it first")))
	_, _, err = p.leases("list")
	p.Expect(err).NotTo(HaveOccurred(), "a daemon does not keep others from reading")
	p.Expect(daemon.Close()).To(Succeed())

	out, _, err = p.leases("release", "192.168.77.100")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(Equal("192.168.77.100 of 52:54:00:00:00:01 is released\n192.168.77.100 is free; if 52:54:00:00:00:01 still runs, it gets it again at its next renewal, unless another has it by then\n"))
	out, _, err = p.leases("list")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(ContainSubstring("Released"))
}

func TestWhoHadAnAddressIsFoundInALeaseFile(t *testing.T) {
	p, begun := newPoolFiles(t), time.Now().Add(-time.Second)
	for n, host := range []string{"worker-1", "worker-2"} {
		file := p.writes(host, fmt.Sprintf("%d 52:54:00:00:00:0%d 192.168.77.100 %s *\n", time.Now().Add(time.Hour).Unix(), n+1, host))
		_, _, err := p.leases("import", file, "--from", "dnsmasq")
		p.Expect(err).NotTo(HaveOccurred())
		if n == 0 {
			_, _, err := p.leases("release", "192.168.77.100")
			p.Expect(err).NotTo(HaveOccurred())
		}
	}
	out, _, err := p.leases("history", "192.168.77.100")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(MatchRegexp(`52:54:00:00:00:01  worker-1 .*Released .*\n.*52:54:00:00:00:02  worker-2 .* - `))
	out, _, err = p.leases("history", "worker-2")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).NotTo(ContainSubstring("worker-1"))

	out, _, err = p.leases("who", "192.168.77.100", "--at", time.Now().Format(time.RFC3339))
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(out).To(And(ContainSubstring("Host name:         worker-2"), ContainSubstring("it has it still")))
	for who, says := range map[string]string{"192.168.77.100": "its record begins at ", "192.168.77.101": "no lease of it is on record"} {
		_, _, err = p.leases("who", who, "--at", begun.Format(time.RFC3339))
		p.Expect(err).To(MatchError(And(HavePrefix("nobody is on record to have had "+who+" at "), ContainSubstring(says))))
		p.Expect(ExitCode(err)).To(Equal(1))
	}
	exported, _, err := p.leases("export")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(exported).To(ContainSubstring(`"history":[{"mac":"52:54:00:00:00:01","hostname":"worker-1"`))
}

func TestLeasesSaysWhatIsWrong(t *testing.T) {
	p := newPoolFiles(t)
	file := p.writes("none", "")
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"import", file, "--from", "udhcpd"}, "--from udhcpd: write dnsmasq, isc-dhcpd, kea, oooi", unusable},
		{[]string{"import", "--from", "kea"}, "give a lease file: ", unusable},
		{[]string{"import", file}, `required flag(s) "from" not set`, unusable},
		{[]string{"import", p.dir + "/missing", "--from", "kea"}, "no such file or directory", unusable},
		{[]string{"list", "192.168.77.9"}, `"192.168.77.9" is not expected: `, unusable},
		{[]string{"list"}, "reading leases: open ", unusable},
		{[]string{"who", "192.168.77.9"}, `required flag(s) "at" not set`, unusable},
		{[]string{"who", "worker-1", "--at", "2026-11-24T14:03:00Z"}, `"worker-1" is no IP address; for a machine: oooi leases history worker-1`, unusable},
		{[]string{"who", "192.168.77.9", "--at", "2026-11-24 14:03"}, `--at "2026-11-24 14:03": write the time with its zone, like 2026-11-24T14:03:00+01:00`, unusable},
		{[]string{"who", "192.168.77.9", "--at", "2226-11-24T14:03:00Z"}, "--at 2226-11-24T14:03:00Z is not over yet", unusable},
		{[]string{"release", "worker-1"}, `"worker-1" is no IP address; find it with oooi leases show worker-1`, unusable},
		{[]string{"list", "--server", "a"}, "--server is a DHCPServer of a cluster, and --lease-file needs none: give one of them", unusable},
	} {
		_, _, err := p.leases(c.args...)
		p.Expect(err).To(MatchError(ContainSubstring(c.says)), "%v", c.args)
		p.Expect(ExitCode(err)).To(Equal(c.code), "%v", c.args)
	}
	_, _, err := p.leases("import", file, "--from", "dnsmasq")
	p.Expect(err).NotTo(HaveOccurred())
	for _, args := range [][]string{{"show", "192.168.77.9"}, {"release", "192.168.77.9"}, {"history", "192.168.77.9"}} {
		_, _, err := p.leases(args...)
		p.Expect(err).To(MatchError(MatchRegexp("192.168.77.9")))
		p.Expect(ExitCode(err)).To(Equal(1))
	}
}

// Whatever another program wrote stays, whichever command is given it as the lease file of oooi.
func TestAnotherServersLeaseFileIsNotTakenForOurs(t *testing.T) {
	p := newPoolFiles(t)
	const theirs = "lease 192.168.77.100 {\n  ends never;\n  hardware ethernet 52:54:00:00:00:01;\n}\n"
	file := p.writes("leases", theirs)
	for _, args := range [][]string{{"import", file, "--from", "isc-dhcpd"}, {"import", file, "--from", "isc-dhcpd", "--dry-run"}, {"list"}, {"release", "192.168.77.100"}} {
		_, _, err := p.leases(args...)
		p.Expect(err).To(MatchError(ContainSubstring(file+` is no lease file of oooi dhcp, which begins with "oooi leases 1", and is left as it is`)), "%v", args)
		p.Expect(ExitCode(err)).To(Equal(unusable), "%v", args)
	}
	p.Expect(os.ReadFile(file)).To(BeEquivalentTo(theirs))
	p.Expect(filepath.Glob(file + ".*")).To(BeEmpty())
}

func TestALeaseFileOfAnotherKindIsCalledSo(t *testing.T) {
	p := newPoolFiles(t)
	file := p.writes("dhcpd.leases", "lease 192.168.77.100 {\n  ends never;\n}\n")
	_, told, err := p.leases("import", file, "--from", "dnsmasq")
	p.Expect(err).To(HaveOccurred())
	p.Expect(told).To(HavePrefix(file + ": nothing in it is a lease as dnsmasq writes it; --from says what wrote the file: dnsmasq, isc-dhcpd, kea, oooi\n"))

	_, told, err = p.leases("import", p.writes("dnsmasq.leases", "1500000000 52:54:00:00:00:06 192.168.77.103 * *\nsoon\n"), "--from", "dnsmasq")
	p.Expect(err).To(HaveOccurred())
	p.Expect(told).NotTo(ContainSubstring("nothing in it"))
}
