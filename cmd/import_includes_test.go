package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// included is a machine's files, as they are given to import, with what has to become of them.
type included struct {
	files map[string]string
	args  []string
	made  []string // of the Infra
	left  []string // lines that are told
	not   []string // neither made nor told
}

const zoneOf = "$TTL 1h\n@ SOA ns root 1 1 1 1 1\n@ NS ns\n"

var includes = map[string]included{
	"a file elsewhere is not read": {
		files: map[string]string{
			"etc/dnsmasq.conf": "conf-file=/var/lib/other.conf\nconf-file=../up.conf\nconf-file=link.conf\nconf-dir=/run/dnsmasq.d\nport=0\n",
			"up.conf":          "host-record=up.example.com,10.0.0.9\n", "etc/link.conf": "-> ../up.conf",
		},
		args: []string{"--dnsmasq", "etc/dnsmasq.conf"},
		left: []string{
			"etc/dnsmasq.conf:1: conf-file=/var/lib/other.conf: give that file too, with --dnsmasq", "etc/dnsmasq.conf:2: conf-file=../up.conf: give that file too, with --dnsmasq",
			"etc/dnsmasq.conf:3: conf-file=link.conf: ", "etc/dnsmasq.conf:4: conf-dir=/run/dnsmasq.d: give the files of that directory too, each with --dnsmasq",
		},
		not: []string{"up.example.com", "/dnsmasq.conf:5"},
	},
	"a copy of /etc has its own files": {
		files: map[string]string{
			"copy/etc/dnsmasq.conf":          "conf-dir=/etc/dnsmasq.d/,.old,.rpmsave\n",
			"copy/etc/dnsmasq.d/a":           "host-record=a.example.com,10.0.0.1\nnonsense=1\n",
			"copy/etc/dnsmasq.d/b.old":       "host-record=b.example.com,10.0.0.2\n",
			"copy/etc/dnsmasq.d/.c":          "host-record=c.example.com,10.0.0.3\n",
			"copy/etc/dnsmasq.d/empty/inner": "host-record=d.example.com,10.0.0.4\n",
		},
		args: []string{"--dnsmasq", "copy/etc/dnsmasq.conf"},
		made: []string{"hostname: a.example.com\n"}, left: []string{"copy/etc/dnsmasq.d/a:2: nonsense=1: "},
		not: []string{"b.example.com", "c.example.com", "d.example.com", "/dnsmasq.conf:1: conf-dir"},
	},
	"files that are given are read where they are included, and once": {
		files: map[string]string{
			"hosts.conf":   "host worker-1 { hardware ethernet 52:54:00:00:00:01; fixed-address 10.0.0.5; }\nodd;\n",
			"d/dhcpd.conf": "subnet 10.0.0.0 netmask 255.255.255.0 { group { use-host-decl-names on; include \"/etc/dhcp/hosts.conf\"; include \"/etc/dhcp/absent.conf\"; } }\n",
		},
		args: []string{"--isc-dhcpd", "hosts.conf", "--isc-dhcpd", "d/dhcpd.conf"},
		made: []string{"hostname: worker-1\n", "cidr: 10.0.0.0/24\n"},
		left: []string{"hosts.conf:2: odd;: ", "d/dhcpd.conf:1: include \"/etc/dhcp/absent.conf\";: give that file too, with --isc-dhcpd"},
	},
	"dnsmasq's lists of hosts, options and names": {
		files: map[string]string{
			"etc/dnsmasq.conf": "dhcp-range=10.0.0.5,10.0.0.9,255.255.255.0\naddn-hosts=/etc/names\ndhcp-hostsfile=/etc/reserved\ndhcp-optsdir=/etc/opts\nhost-record=first.example.com,10.0.0.7\n" +
				"addn-hosts=/absent/one\nhostsdir=/absent/hosts\ndhcp-hostsfile=/absent/two\ndhcp-optsdir=/absent/three\ndhcp-optsfile=/given/four\n",
			"etc/reserved": "# workers\n52:54:00:00:00:01,worker-1,10.0.0.20 # the first\nport=5353\n", "four": "option:mtu,1400\n",
			"etc/opts/a": "option:ntp-server,10.0.0.4\n", "etc/opts/b~": "option:ntp-server,10.0.0.6\n", "etc/names/x": "10.0.0.7 second.example.com\n",
		},
		args: []string{"--dnsmasq", "etc/dnsmasq.conf", "--dnsmasq", "four"},
		made: []string{"hostname: worker-1\n", "ntpServers:\n    - 10.0.0.4\n", "hostname: first.example.com\n        ip: 10.0.0.7\n      - hostname: second.example.com\n", "mtu: 1400\n"},
		left: []string{
			"etc/reserved:3: port=5353: it has no address", "etc/dnsmasq.conf:6: addn-hosts=/absent/one: give that file too, with --hosts, if it is not given",
			"etc/dnsmasq.conf:7: hostsdir=/absent/hosts: give the files of that directory too, each with --hosts", "etc/dnsmasq.conf:8: dhcp-hostsfile=/absent/two: give that file too, with --dnsmasq",
			"etc/dnsmasq.conf:9: dhcp-optsdir=/absent/three: give the files of that directory too, each with --dnsmasq",
			"they are not read in full at etc/dnsmasq.conf:8, etc/dnsmasq.conf:9: do",
		},
		not: []string{"10.0.0.6", "etc/dnsmasq.conf:2", "four:1"},
	},
	"files that include each other": {
		files: map[string]string{
			"a.conf": "include \"b.conf\";\nsubnet 10.0.0.0 netmask 255.255.255.0 { }\n", "b.conf": "include \"a.conf\";\nsubnet 10.0.0.0 netmask 255.255.255.0 { option routers 10.0.0.1; }\n",
		},
		args: []string{"--isc-dhcpd", "a.conf", "--isc-dhcpd", "b.conf"},
		made: []string{"gateway: 10.0.0.1\n"}, left: []string{"b.conf:1: include \"a.conf\";: a.conf is read once, and includes itself here"},
	},
	"what Kea includes is there or not, wherever it stands": {
		files: map[string]string{
			"kea.conf":     "{ \"Dhcp4\": {\n<?include \"absent.json\"?>, // <?include \"comment.json\"?>\n\"option-data\": <?include \"absent.json\"?>,\n\"subnet4\": [ <?include \"absent.json\"?>,\n <?include \"subnets.json\"?> ],\n\"odd\": 1 } }\n",
			"subnets.json": "/* of\nthe site */ { \"subnet\": \"10.0.0.0/24\",\n\"even\": \"<?include \\\"x\\\"?>\" },\n",
		},
		args: []string{"--kea", "kea.conf"}, made: []string{"cidr: 10.0.0.0/24\n"},
		left: []string{
			"kea.conf:2: <?include \"absent.json\"?>: give that file too, with --kea", "kea.conf:3: <?include", "kea.conf:4: <?include", "subnets.json:3: \"even\"", "kea.conf:6: \"odd\": 1: ",
		},
		not: []string{"comment.json: give", "kea.conf:5", "not read from here on"},
	},
	"zones of one base name are told apart by their paths": {
		files: map[string]string{
			"named.conf":       "options { directory \"/var/cache/bind\"; };\nzone \"out.example.com\" { type primary; file \"external/db\"; };\nzone \"in.example.com\" { type primary; file \"internal/db\"; };\n",
			"copy/internal/db": zoneOf + "www A 10.0.0.1\n$INCLUDE internal/more sub\n A 10.0.0.3\nlost A 10.0.0\n",
			"copy/more":        "deep A 10.0.0.2\n$ORIGIN elsewhere.example.com.\nfar A 10.0.0.4\n",
		},
		args: []string{"--bind", "named.conf", "--bind", "copy/more", "--bind", "copy/internal/db"},
		made: []string{"hostname: www.in.example.com\n        ip: 10.0.0.1\n", "hostname: www.in.example.com\n        ip: 10.0.0.3\n", "hostname: deep.sub.in.example.com\n", "hostname: far.elsewhere.example.com\n"},
		left: []string{"named.conf:2: zone \"out.example.com\" { … }: copy/internal/db may be it, or not: give it by a path that ends as this one", "copy/internal/db:7: lost A 10.0.0: it is no record"},
		not:  []string{"www.out.example.com", "deep.zone.invalid"},
	},
	"zones from the server's working directory": {
		files: map[string]string{
			"etc/bind/named.conf":       "include \"/etc/bind/named.*.local\";\noptions { directory \"/etc/bind/zones\"; };\nzone \"one.example.com\" { type slave; file \"copied\"; };\n",
			"etc/bind/named.conf.local": "zone \"raw.example.com\" { type slave; file \"raw\"; };\nzone \"a.example.com\" { type primary; file \"both\"; };\nzone \"b.example.com\" { type primary; file \"both\"; };\n",
			"etc/bind/zones/both":       zoneOf + "www A 10.0.0.1\n", "etc/bind/zones/raw": "\x00\x00\x00\x02",
		},
		args: []string{"--bind", "etc/bind/named.conf"},
		made: []string{"hostname: www.a.example.com\n", "hostname: www.b.example.com\n"},
		left: []string{
			"etc/bind/named.conf:3: zone \"one.example.com\" { … }: it is another server's: give its zone file", "named.conf.local:1: zone \"raw.example.com\" { … }: etc/bind/zones/raw is not in text",
		},
	},
}

// What a file includes is read where it is below the file's directory or given, and all else is told by file and line.
func TestWhatFilesIncludeIsReadOrTold(t *testing.T) {
	for name, c := range includes {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Chdir(t.TempDir())
			for file, text := range c.files {
				g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
				if to, is := strings.CutPrefix(text, "-> "); is {
					g.Expect(os.Symlink(to, file)).To(Succeed())
					continue
				}
				g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			}
			infra, left, err := imported("", c.args...)
			left += fmt.Sprint(err)
			for _, made := range c.made {
				g.Expect(strings.Count(infra, made)).To(Equal(1), "%s of\n%s\n%s", made, infra, left)
			}
			for _, told := range c.left {
				g.Expect(strings.Count(left, told)).To(Equal(1), "%s of\n%s", told, left)
			}
			for _, not := range c.not {
				g.Expect(infra + left).NotTo(Or(ContainSubstring("hostname: "+not), ContainSubstring(not+": "), ContainSubstring(not+"\n")))
			}
		})
	}
}

// Includes are followed ten deep, and 1024 times, whatever they amount to.
func TestIncludesAreBounded(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	for i := range 12 {
		text := strings.Repeat(fmt.Sprintf("conf-file=%c\n", 'b'+i), 3) + fmt.Sprintf("host-record=%c.example.com,10.0.0.1\n", 'a'+i)
		g.Expect(os.WriteFile(string(rune('a'+i)), []byte(text), 0o600)).To(Succeed())
	}
	infra, left, _ := imported("", "--dnsmasq", "a")
	g.Expect(infra).To(And(ContainSubstring("hostname: k.example.com\n"), Not(ContainSubstring("hostname: l.example.com\n"))))
	g.Expect(left).To(And(ContainSubstring("k:1: conf-file=l: it is not read, since files are included 10 deep already"), ContainSubstring("since 1024 files are included already")))

	g.Expect(os.Mkdir("many", 0o700)).To(Succeed())
	for i := range 1100 {
		g.Expect(os.WriteFile(fmt.Sprintf("many/%04d.conf", i), fmt.Appendf(nil, "host-record=n%04d.example.com,10.0.0.1\n", i), 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile("all", []byte("conf-dir=many\n"), 0o600)).To(Succeed())
	_, left, _ = imported("", "--dnsmasq", "all")
	g.Expect(left).To(ContainSubstring("from many/1024.conf on they are not read, since 1024 files are included already"))
}

// A FIFO would hold up who opens it until somebody writes.
func TestOnlyFilesAreIncluded(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(syscall.Mkfifo("pipe", 0o600)).To(Succeed())
	g.Expect(os.WriteFile("a", []byte("conf-file=pipe\nhost-record=a.example.com,10.0.0.1\n"), 0o600)).To(Succeed())
	said := make(chan string, 1)
	go func() {
		_, left, _ := imported("", "--dnsmasq", "a")
		said <- left
	}()
	g.Eventually(said).WithTimeout(20 * time.Second).Should(Receive(ContainSubstring("a:1: conf-file=pipe: it is not read: pipe is not a file of at most 16 MiB")))
}

// A file of addn-hosts counts once, by whatever name it is given, too, and is not the machine's hosts file.
func TestAHostsFileIsReadOnce(t *testing.T) {
	writeAll(t, map[string]string{"etc/d.conf": "addn-hosts=/etc/names\n", "etc/names": "10.0.0.7 a.example.com\nbad\n", "etc/hosts": "10.0.0.8 b.example.com\n"})
	for _, name := range []string{"etc/names", "./etc/../etc/names"} {
		g := NewWithT(t)
		infra, left, _ := imported("", "--dnsmasq", "etc/d.conf", "--hosts", name)
		g.Expect(infra).To(ContainSubstring("a.example.com"))
		g.Expect(strings.Count(left, "names:2: bad: it is not an address with names")).To(Equal(1), left)
		g.Expect(left).To(ContainSubstring("etc/d.conf:1: no-hosts is not written: "))
		_, left, _ = imported("", "--dnsmasq", "etc/d.conf", "--hosts", name, "--hosts", "etc/hosts")
		g.Expect(left).NotTo(ContainSubstring("no-hosts is not written"))
	}
}
