//go:build netns

package cmd

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// example is a VLAN that peers serve by the files that their Debian packages install. These are used word for word, except for what is listed.
type example struct {
	files  []exampleFile
	flags  []string          // of oooi import
	given  map[string]string // what the Infra that they are merged into says instead
	kinds  []string          // the daemons that have something to serve
	peers  []peer
	router string // the address of another machine, which resolves names and takes mail
	// pool is where the addresses are of clients that have none of their own.
	first, last string
	clients     map[string]exampleClient
	names       []string // dig's arguments
	dig, asks   string   // the addresses of dig, and of the resolver, which the Infra's DNS takes over
	connects    []string // addresses at which a server speaks first
	// differs has what clients are told in another way, by client and option or by option alone, and what import says of it.
	differs map[string]string
}

// exampleFile is a copy of an installed file, at the same place below another root.
type exampleFile struct {
	from, to string
	all      *regexp.Regexp    // the lines that are comments, and statements without their first letter: all are used
	used     []string          // of such lines, those that are used
	changed  map[string]string // what would not run
	text     string            // of a file that no package installs
}

// exampleClient is what a client of DHCP is and says, and whether nobody answers it.
type exampleClient struct {
	mac    string
	args   []string
	silent bool
}

var anyClient = exampleClient{mac: "52:54:00:00:03:01"}

// iscExample has the whole example of ISC dhcpd, of whose networks that counts which the server has an address in. Its names are in the machine's
// hosts file.
func iscExample(e example) example {
	e.files = []exampleFile{
		{from: "/usr/share/doc/isc-dhcp-server/examples/dhcpd.conf.example", to: "etc/dhcp/dhcpd.conf", all: regexp.MustCompile(`(?m)^#(\S.*[;{}]|  .*|})$`)},
		{to: "etc/hosts", text: strings.Join([]string{
			"198.51.100.1 ns1.example.org", "198.51.100.2 ns2.example.org", "10.5.5.2 ns1.internal.example.org", "10.5.5.29 fantasia.example.com", "10.254.239.1 rtr-239-0-1.example.org",
			"10.254.239.2 rtr-239-0-2.example.org", "10.254.239.33 rtr-239-32-1.example.org", "10.17.224.1 rtr-224.example.org", "10.0.29.1 rtr-29.example.org", "",
		}, "\n")},
	}
	e.flags, e.kinds = []string{"--isc-dhcpd", "etc/dhcp/dhcpd.conf", "--hosts", "etc/hosts"}, []string{"DHCPServer"}
	e.peers[0].command = []string{"sh", "-c", "mount --bind FILES/etc/hosts /etc/hosts && touch TMP/leases && exec dhcpd -f -d --no-pid -cf FILES/etc/dhcp/dhcpd.conf -lf TMP/leases net1"}
	return e
}

// vlanOf is the Infra's network, where no file says it.
func vlanOf(cidr string) map[string]string {
	return map[string]string{"{networkAttachmentDefinition: vlan100}": "{networkAttachmentDefinition: vlan100, " + cidr + "}"}
}

// dnsmasqExample is all comments, each a statement to use: many exclude each other. No card can have its address 11:22:33:44:55:66, which is a group's.
func dnsmasqExample(e example, used ...string) example {
	e.files = []exampleFile{
		{
			from: "/usr/share/doc/dnsmasq-base/examples/dnsmasq.conf.example", to: "etc/dnsmasq.conf", used: append(used, "resolv-file=", "listen-address=", "no-hosts"),
			changed: map[string]string{"11:22:33:44:55:66": "10:22:33:44:55:66", "\nresolv-file=\n": "\nresolv-file=FILES/etc/resolv.dnsmasq\n", "\nlisten-address=\n": "\nlisten-address=192.168.0.2\n"},
		},
		{to: "etc/resolv.dnsmasq", text: "nameserver 192.168.0.1\n"},
	}
	e.flags, e.kinds = []string{"--dnsmasq", "etc/dnsmasq.conf"}, []string{"DHCPServer", "DNSServer"}
	e.given = vlanOf("cidr: 192.168.0.0/24, dnsServers: [192.168.0.1]") // of that file
	e.peers = []peer{{"192.168.0.2/24", []string{"dnsmasq", "-k", "-C", "FILES/etc/dnsmasq.conf", "--user=root", "--pid-file", "--dhcp-leasefile=TMP/leases"}}}
	e.router, e.dig, e.asks = "192.168.0.1/24", "192.168.0.210/24", "192.168.0.2"
	return e
}

func copied(directory string, names ...string) (all []exampleFile) {
	for _, name := range names {
		all = append(all, exampleFile{from: directory + name, to: directory[1:] + name})
	}
	return all
}

var examples = map[string]example{
	"isc-dhcpd": iscExample(example{
		peers: []peer{{at: "10.254.239.5/27"}}, router: "10.254.239.1/27", first: "10.254.239.10", last: "10.254.239.20",
		clients: map[string]exampleClient{"any": anyClient, "passacaglia": {mac: "00:00:c0:5d:bd:95"}},
		differs: map[string]string{
			"dns":                   "clients ask the Infra's DNS, which asks 198.51.100.1",
			"domain":                "clients get the domain of the hosted cluster",
			"search":                "example.org is a search domain",
			"router":                "clients get the first alone, not 10.254.239.2",
			"passacaglia boot_file": `filename "vmunix.passacaglia";: it is for some clients only`,
			"passacaglia sname":     `server-name "toccata.example.com";: it is for some clients only`,
		},
	}),
	"isc-dhcpd, the internal subnet": iscExample(example{
		given: vlanOf("cidr: 10.5.5.0/27"), peers: []peer{{at: "10.5.5.5/27"}}, router: "10.5.5.1/27", first: "10.5.5.26", last: "10.5.5.30",
		clients: map[string]exampleClient{"any": anyClient, "fantasia": {mac: "08:00:07:26:c0:a5"}},
		differs: map[string]string{
			"dns":    "clients ask the Infra's DNS, which asks 10.5.5.2",
			"domain": "clients get the domain of the hosted cluster",
			"search": "internal.example.org is a search domain",
		},
	}),
	// No example of a package has an escape, or another type for an option that dhcpd knows.
	"isc-dhcpd, escapes and types": {
		files: []exampleFile{{to: "etc/dhcp/dhcpd.conf", text: strings.Join([]string{
			"default-lease-time 600; max-lease-time 600;", "subnet 192.0.2.0 netmask 255.255.255.0 { range 192.0.2.100 192.0.2.150; option routers 192.0.2.1; }",
			`option domain-name-servers 192.0.2.1; option domain-name "example.org";`,
			`option root-path "a\x41\1012\q\"\\.\477";`, "option magic code 128 = string;", `option magic "\t\r\n\b\xff\x00\001";`, "option other code 129 = string;", `option other "a;b";`,
			"option ttl code 23 = unsigned integer 32;", "option ttl 64;", "option ip-forwarding code 19 = unsigned integer 16;", "option ip-forwarding 1;",
			"option octets code 208 = string;", "option octets f1:0:74:7e;", "option plain code 210 = text;", `option plain "a\tb\xe4";`, "",
		}, "\n")}},
		flags: []string{"--isc-dhcpd", "etc/dhcp/dhcpd.conf"}, kinds: []string{"DHCPServer"},
		peers:  []peer{{"192.0.2.2/24", []string{"sh", "-c", "touch TMP/leases && exec dhcpd -f -d --no-pid -cf FILES/etc/dhcp/dhcpd.conf -lf TMP/leases net1"}}},
		router: "192.0.2.1/24", first: "192.0.2.100", last: "192.0.2.150",
		clients: map[string]exampleClient{"any": anyClient},
		differs: map[string]string{
			"dns":    "clients ask the Infra's DNS, which asks 192.0.2.1",
			"domain": "clients get the domain of the hosted cluster",
			"search": "example.org is a search domain",
		},
	},
	// The examples of Kea and HAProxy are in one network. HAProxy's own configuration serves nothing; what is with it says more.
	"kea, bind and haproxy": {
		files: slices.Concat([]exampleFile{
			{from: "/etc/kea/kea-dhcp4.conf", to: "etc/kea/kea-dhcp4.conf", changed: map[string]string{`"interfaces": [ ]`: `"interfaces": [ "net1" ]`}},
			{from: "/etc/bind/named.conf.options", to: "etc/bind/named.conf.options", changed: map[string]string{
				"// forwarders {\n\t// \t0.0.0.0;\n\t// };": "forwarders { 192.0.2.1; };", "dnssec-validation auto": "dnssec-validation no", // without the root servers
			}},
			{from: "/etc/bind/named.conf.local", to: "etc/bind/named.conf.local", changed: map[string]string{"//include": "include"}},
		}, copied("/etc/bind/", "named.conf", "named.conf.default-zones", "zones.rfc1918", "db.0", "db.127", "db.255", "db.empty", "db.local"),
			copied("/etc/haproxy/", "haproxy.cfg"), copied("/usr/share/doc/haproxy/examples/", "socks4.cfg")),
		flags: []string{
			"--kea", "etc/kea/kea-dhcp4.conf", "--bind", "etc/bind/named.conf", "--haproxy", "etc/haproxy/haproxy.cfg", "--haproxy", "usr/share/doc/haproxy/examples/socks4.cfg",
		},
		given: map[string]string{"proxy: {replicas: 1}": "proxy: {replicas: 1, serverIP: 192.0.2.250}"}, // HAProxy's files do not say it
		kinds: []string{"DHCPServer", "DNSServer", "ProxyServer"},
		peers: []peer{
			{"192.0.2.2/24", []string{"sh", "-c", "mount --bind FILES/etc/bind /etc/bind && mount -t tmpfs none /var/cache/bind && mount -t tmpfs none /run && mkdir /run/named && exec named -g"}},
			{"192.0.2.250/24", []string{"sh", "-c", "mount -t tmpfs none /run && mkdir /run/haproxy && exec haproxy -db -f FILES/etc/haproxy/haproxy.cfg -f FILES/usr/share/doc/haproxy/examples/socks4.cfg"}},
			{"192.0.2.251/24", []string{"sh", "-c", "mount -t tmpfs none /run && mkdir -p /run/kea /run/lock/kea && mount -t tmpfs none /var/lib && mkdir /var/lib/kea && exec kea-dhcp4 -c FILES/etc/kea/kea-dhcp4.conf"}},
		},
		router: "192.0.2.1/24", first: "192.0.2.1", last: "192.0.2.200",
		clients: map[string]exampleClient{
			"any":       anyClient,
			"hw":        {mac: "1a:1b:1c:1d:1e:1f"},
			"snowflake": {mac: "52:54:00:00:03:02", args: []string{"-x", "0x3d:01112233445566"}},
			"duid":      {mac: "52:54:00:00:03:03", args: []string{"-x", "0x3d:ff000000010102030405"}},
			"vivso":     {mac: "52:54:00:00:03:04", args: []string{"-x", "0x3d:01122334455667"}},
			"boots":     {mac: "52:54:00:00:03:05", args: []string{"-x", "0x3d:010a0b0c0d0e0f"}},
			"voip":      {mac: "52:54:00:00:03:06", args: []string{"-V", "AastraIPPhone"}},
		},
		names: []string{
			"localhost", "localhost AAAA", "absent.localhost", "far.example.net", "absent.example.net", "-x 127.0.0.1", "-x 0.0.0.1", "-x 255.255.255.255", "-x 10.1.2.3", "-x 192.168.1.1",
			"-x 192.0.2.201", "-x 192.0.2.202",
		},
		dig: "192.0.2.210/24", asks: "192.0.2.2", connects: []string{"192.0.2.250:20025", "192.0.2.250:20080"},
		differs: map[string]string{
			"dns":                     "clients ask the Infra's DNS, which asks 192.0.2.1",
			"domain":                  "clients get the domain of the hosted cluster",
			"search":                  "example.org is a search domain",
			"opt58":                   "clients renew after half of the lease's time (T1)",
			"opt59":                   "clients ask any server after seven eighths of the lease's time (T2)",
			"duid ip":                 `"reservations": 192.0.2.203: a reservation is for an Ethernet address or a client identifier`,
			"duid dns":                `"option-data": […]: it is for some clients only`,
			"vivso opt125":            `"option-data": […]: it is for some clients only`,
			"boots siaddr":            `"next-server": 192.0.2.1: it is for some clients only`,
			"boots sname":             `"server-hostname": hal9000: it is for some clients only`,
			"boots boot_file":         `"boot-file-name": /dev/null: it is for some clients only`,
			"voip siaddr":             `"client-classes": […]: it is for some clients only`,
			"voip sname":              `"client-classes": […]: it is for some clients only`,
			"voip boot_file":          `"client-classes": […]: it is for some clients only`,
			"dig localhost":           `zone "localhost" { … }: DNS asks its resolvers`,
			"dig localhost AAAA":      `zone "localhost" { … }: DNS asks its resolvers`,
			"dig -x 127.0.0.1":        `zone "127.in-addr.arpa" { … }: DNS asks its resolvers`,
			"dig -x 255.255.255.255":  `zone "255.in-addr.arpa" { … }: DNS asks its resolvers`,
			"dig -x 192.0.2.202":      "DNS answers 192.0.2.202 with special-snowflake.c1.example.com",
			"reads 192.0.2.250:20080": "nothing of SSL-20080 is an address to pass on to",
		},
	},
	"dnsmasq": dnsmasqExample(example{
		first: "192.168.0.50", last: "192.168.0.150",
		clients: map[string]exampleClient{
			"any": anyClient, "fred": {mac: "10:22:33:44:55:66"}, "bert": {mac: "52:54:00:00:03:02", args: []string{"-x", "hostname:bert"}},
			"ib": {mac: "52:54:00:00:03:03", args: []string{"-x", "0x3d:ff000000000002000002c900f452140300280581"}},
		},
		names: []string{
			"double-click.net", "any.double-click.net", "double-click.net AAAA", "www.thekelleys.org.uk", "www.thekelleys.org.uk AAAA", "host.localnet", "far.example.net", "absent.example.net",
			"fred.thekelleys.org.uk", "fred", "bertrand", "-x 192.168.0.60", "-x 192.168.0.99", "-x 192.168.3.1",
		},
		differs: map[string]string{
			"router":                     "dnsmasq is the router of its clients",
			"domain":                     "clients get the domain of the hosted cluster",
			"search":                     "thekelleys.org.uk is a search domain",
			"staticroutes":               "the route to 192.168.1.0/24 has a router that is not inside 192.168.0.0/24",
			"wins":                       "0.0.0.0 stands for the host that the server runs on, which goes",
			"any lease":                  "for an hour at most",
			"bert lease":                 "infinite: all leases last for dhcp.leaseTime",
			"bert hostname":              "dhcp-host=bert,192.168.0.70,infinite: it says neither",
			"fred lease":                 "45m: all leases last for dhcp.leaseTime",
			"dig fred":                   "in which DNS answers their names",
			"dig fred.thekelleys.org.uk": "in which DNS answers their names",
			"dig -x 192.168.0.60":        "DNS answers 192.168.0.60 with fred.c1.example.com",
			"dig bertrand":               "cname=bertrand,bert: no file says the address of bert",
			"dig -x 192.168.3.1":         "server=/3.168.192.in-addr.arpa/10.1.2.3: DNS has one list of resolvers",
		},
	}, "dhcp-range=192.168.0.50,192.168.0.150,255.255.255.0,12h", "domain=thekelleys.org.uk", "domain-needed", "bogus-priv", "server=/localnet/192.168.0.1", "server=/3.168.192.in-addr.arpa/10.1.2.3",
		"address=/double-click.net/127.0.0.1", "address=/www.thekelleys.org.uk/fe80::20d:60ff:fe36:f83", "cname=bertrand,bert", "dhcp-host=11:22:33:44:55:66,fred,192.168.0.60,45m",
		"dhcp-host=bert,192.168.0.70,infinite", "dhcp-host=id:ff:00:00:00:00:00:02:00:00:02:c9:00:f4:52:14:03:00:28:05:81,192.168.0.61", "dhcp-option=option:ntp-server,192.168.0.4,10.10.0.5",
		"dhcp-option=40,welly", "dhcp-option=23,50", "dhcp-option=27,1", "dhcp-option=128,e4:45:74:68:00:00", "dhcp-option=129,NIC=eepro100", "dhcp-option=19,0           # option ip-forwarding off",
		"dhcp-option=44,0.0.0.0     # set netbios-over-TCP/IP nameserver(s) aka WINS server(s)", "dhcp-option=46,8           # netbios node type", `dhcp-option=252,"\n"`,
		"dhcp-option=option:domain-search,eng.apple.com,marketing.apple.com", "dhcp-option=121,192.168.1.0/24,1.2.3.4,10.0.0.0/8,5.6.7.8", "dhcp-option-force=208,f1:00:74:7e",
		"dhcp-option-force=209,configs/common", "dhcp-option-force=210,/tftpboot/pxelinux/files/", "dhcp-option-force=211,30i", "dhcp-boot=pxelinux.0", "dhcp-authoritative",
		`txt-record=example.com,"v=spf1 a -all"`),
	"dnsmasq, lists of hosts, options and names": {
		files: []exampleFile{
			{to: "srv/dnsmasq.conf", text: "dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h\nno-resolv\nno-hosts\nserver=192.0.2.1\nlisten-address=192.0.2.2\nbind-interfaces\ndomain=example.org\n" +
				"dhcp-option=3,192.0.2.1\ndhcp-hostsfile=/srv/reserved\ndhcp-optsdir=/srv/options\naddn-hosts=/srv/names\nhostsdir=/srv/more\nhost-record=first.example.com,192.0.2.7\n"},
			{to: "srv/reserved", text: "# workers\n52:54:00:00:03:02,worker-1,192.0.2.20 # the first\n"}, {to: "srv/options/a", text: "option:ntp-server,192.0.2.4\n252,\"\\n\"\n"},
			{to: "srv/options/b~", text: "option:ntp-server,192.0.2.5\n"}, {to: "srv/names", text: "192.0.2.7 second.example.com\n"}, {to: "srv/more/x", text: "192.0.2.8 third.example.com # and last\n"},
		},
		flags: []string{"--dnsmasq", "srv/dnsmasq.conf"}, kinds: []string{"DHCPServer", "DNSServer"}, given: vlanOf("cidr: 192.0.2.0/24"),
		peers:  []peer{{"192.0.2.2/24", []string{"sh", "-c", "mount --bind FILES/srv /srv && exec dnsmasq -k -C /srv/dnsmasq.conf --user=root --pid-file --dhcp-leasefile=TMP/leases"}}},
		router: "192.0.2.1/24", first: "192.0.2.100", last: "192.0.2.150", dig: "192.0.2.210/24", asks: "192.0.2.2",
		clients: map[string]exampleClient{"any": anyClient, "worker": {mac: "52:54:00:00:03:02"}},
		names:   []string{"first.example.com", "second.example.com", "third.example.com", "worker-1.c1.example.com", "-x 192.0.2.7", "-x 192.0.2.8", "-x 192.0.2.20"},
		differs: map[string]string{
			"domain": "clients get the domain of the hosted cluster", "search": "example.org is a search domain",
			"dig worker-1.c1.example.com": "in which DNS answers their names", "dig -x 192.0.2.20": "DNS answers 192.0.2.20 with worker-1.c1.example.com",
		},
	},
	// As its manual shows them: one view for the machines inside, one for all others, with the same zone.
	"bind, views": {
		files: []exampleFile{
			{to: "srv/named.conf", text: strings.Join([]string{
				`acl inside { 10.0.0.0/8; lan; };`, `acl lan { !192.0.2.1; 192.0.2.0/24; };`,
				`options { directory "/srv"; pid-file none; session-keyfile none; listen-on { 192.0.2.2; }; listen-on-v6 { none; }; dnssec-validation no; };`, `controls { };`,
				`view "guests" { match-clients { !inside; 198.51.100.0/24; }; zone "example.org" { type primary; file "outside.zone"; }; zone "example.com" { type primary; file "com.zone"; }; };`,
				`view "inside" { match-clients { { !192.0.2.0/24; any; }; localnets; inside; }; recursion yes; forwarders { 192.0.2.1; }; forward only;`,
				`  zone "example.org" { type primary; file "inside.zone"; }; zone "example.com" { in-view "guests"; }; };`,
				`view "outside" { match-clients { any; }; recursion no; zone "example.org" { type primary; file "outside.zone"; }; };`, "",
			}, "\n")},
			{to: "srv/inside.zone", text: "$TTL 60\n@ SOA ns hostmaster 1 1h 15m 1w 5m\n@ NS ns\nns A 192.0.2.2\nwww.example.org. A 192.0.2.80\nfiles.example.org. A 192.0.2.81\n"},
			{to: "srv/com.zone", text: "$TTL 60\n@ SOA ns hostmaster 1 1h 15m 1w 5m\n@ NS ns.example.org.\nboth A 192.0.2.83\n"},
			{to: "srv/outside.zone", text: "$TTL 60\n@ SOA ns hostmaster 1 1h 15m 1w 5m\n@ NS ns\nns A 203.0.113.2\nwww.example.org. A 203.0.113.80\nshop.example.org. A 203.0.113.82\n"},
		},
		flags: []string{"--bind", "srv/named.conf", "--bind", "srv/outside.zone"}, kinds: []string{"DNSServer"}, given: vlanOf("cidr: 192.0.2.0/24"),
		peers:  []peer{{"192.0.2.2/24", []string{"sh", "-c", "mount --bind FILES/srv /srv && exec named -g -c /srv/named.conf"}}},
		router: "192.0.2.1/24", dig: "192.0.2.210/24", asks: "192.0.2.2",
		names: []string{"ns.example.org", "www.example.org", "files.example.org", "shop.example.org", "both.example.com", "far.example.net", "absent.example.net"},
	},
	"dnsmasq, known clients alone": dnsmasqExample(example{
		clients: map[string]exampleClient{
			"any": {mac: anyClient.mac, silent: true}, "marjorie": {mac: "52:54:00:00:03:02", args: []string{"-x", "0x3d:6d61726a6f726965"}},
		},
		names: []string{"host.localnet", "far.example.net"},
		differs: map[string]string{
			"domain":            "clients get the domain of the hosted cluster",
			"search":            "thekelleys.org.uk is a search domain",
			"opt58":             "the server sets option 58 itself",
			"opt59":             "the server sets option 59 itself",
			"siaddr":            "and not its address 192.168.1.100",
			"dig host.localnet": "local=/localnet/: DNS forwards every name that it does not know",
		},
	}, "dhcp-range=192.168.0.0,static", "domain=thekelleys.org.uk", "dhcp-option=3", "local=/localnet/", "dhcp-host=id:marjorie,192.168.0.60", "dhcp-option=option:T1,1m", "dhcp-option=option:T2,2m", "dhcp-boot=pxelinux,server.name,192.168.1.100"),
}

// What clients are told by a peer that its package's example configures, they are told by the Infra that the example becomes.
func TestAnInfraAnswersAsTheExampleThatItWasImportedFrom(t *testing.T) {
	starts := make(chan error, 1)
	var cluster *envtest.Cluster
	go func() {
		var err error
		cluster, err = envtest.Start(true)
		starts <- err
	}()
	before := map[string]map[string]string{}
	all := slices.Sorted(maps.Keys(examples))
	for _, name := range all { // while the API server starts
		t.Run(name+", peers", func(t *testing.T) {
			before[name] = examples[name].asked(t, func(v *vlan) { v.start(examples[name].peers) })
		})
	}
	NewWithT(t).Expect(<-starts).To(Succeed())
	t.Cleanup(func() { NewWithT(t).Expect(cluster.Stop()).To(Succeed()) })
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			e := examples[name]
			var left string
			after := e.asked(t, func(v *vlan) {
				infra, said := e.imports(v)
				left = strings.ReplaceAll(said, v.Path("files"), "")
				v.apiServer(cluster)
				t.Cleanup(v.forget)
				children := v.children(infra)
				maps.DeleteFunc(children, func(kind, _ string) bool { return kind != "Infra" && !slices.Contains(e.kinds, kind) })
				v.daemons(children)
			})
			e.compares(t, before[name], after, left)
		})
	}
}

func (e example) compares(t *testing.T, before, after map[string]string, left string) {
	t.Helper()
	used := map[string]bool{}
	for key := range both(before, after) {
		why, of := e.differs[key], key
		if why == "" {
			_, of, _ = strings.Cut(key, " ")
			why = e.differs[of]
		}
		if why == "" || before[key] == after[key] {
			continue
		}
		used[of] = true
		if !strings.Contains(left, why) {
			t.Errorf("%s is %q and was %q; import has to say %q of it", key, after[key], before[key], why)
		}
		delete(before, key)
		delete(after, key)
	}
	for key := range e.differs {
		if !used[key] {
			t.Errorf("%s is the same: take it out of what differs", key)
		}
	}
	for key := range both(before, after) {
		if before[key] != after[key] {
			t.Errorf("%s is %q and was %q", key, after[key], before[key])
		}
	}
	if t.Failed() {
		t.Log(left)
	}
}

// both has the keys of two maps.
func both(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// write copies the files to where both the peer and import read them.
func (e example) write(v *vlan) {
	v.t.Helper()
	g := NewWithT(v.t)
	for _, f := range e.files {
		text := f.text
		if f.from != "" {
			text = installed(v.t, f.from)
		}
		if f.all != nil {
			text = f.all.ReplaceAllString(text, "$1")
		}
		for _, line := range f.used {
			g.Expect(text).To(ContainSubstring("\n#"+line+"\n"), f.from)
			text = strings.ReplaceAll(text, "\n#"+line+"\n", "\n"+line+"\n")
		}
		for old, instead := range f.changed {
			g.Expect(text).To(ContainSubstring(old), f.from)
			text = strings.ReplaceAll(text, old, strings.ReplaceAll(instead, "FILES", v.Path("files")))
		}
		at := v.Path(filepath.Join("files", f.to))
		g.Expect(os.MkdirAll(filepath.Dir(at), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(at, []byte(text), 0o644)).To(Succeed())
	}
}

// installed is a file of a package.
func installed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: install the package (make test does)", err)
	}
	if strings.HasSuffix(name, ".gz") {
		unpacked, err := gzip.NewReader(bytes.NewReader(text))
		if err == nil {
			text, err = io.ReadAll(unpacked)
		}
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	return string(text)
}

func (e example) imports(v *vlan) (infra, left string) {
	v.t.Helper()
	g := NewWithT(v.t)
	base, err := os.ReadFile("testdata/moving/infra.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	given := string(base)
	for old, instead := range e.given {
		g.Expect(given).To(ContainSubstring(old))
		given = strings.ReplaceAll(given, old, instead)
	}
	g.Expect(os.WriteFile(v.Path("given.yaml"), []byte(given), 0o600)).To(Succeed())
	args := []string{"-f", v.Path("given.yaml"), "-f", cluster(v.t)}
	for i := 0; i < len(e.flags); i += 2 {
		args = append(args, e.flags[i], v.Path("files/"+e.flags[i+1]))
	}
	infra, left, _ = imported("", args...)
	return infra, left
}

// forget removes what the next example begins without.
func (v *vlan) forget() {
	for _, kind := range []client.Object{&v1alpha1.Infra{}, &v1alpha1.DHCPServer{}, &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}, &v1alpha1.DHCPLease{}} {
		NewWithT(v.t).Expect(v.api.DeleteAllOf(context.Background(), kind, client.InNamespace("clusters"))).To(Succeed())
	}
}

// asked is all that clients are told on the VLAN of an example.
func (e example) asked(t *testing.T, serve func(*vlan)) map[string]string {
	t.Helper()
	v := newVLAN(t)
	e.write(v)
	v.attach("router", "02:00:00:00:00:0a", e.router)
	v.begin("router", nil, "dnsmasq", "-k", "-C", "/dev/null", "--user=root", "--pid-file", "--no-resolv", "--no-hosts", "--address=/far.example.net/198.51.100.7", "--address=/host.localnet/198.51.100.8", "--local=/#/")
	v.Enter("router", func() { v.listen(":25", v.greets) })
	serve(v)
	said := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.clients)) {
		v.attach(name, e.clients[name].mac, "")
		for option, value := range e.told(v, name) {
			said[name+" "+option] = value
		}
	}
	if e.dig != "" {
		v.attach("dig", "02:00:00:00:00:0d", e.dig)
	}
	for _, name := range e.names {
		said["dig "+name] = v.digs(e.asks, strings.Fields(name)...)
	}
	for _, at := range e.connects {
		said["reads "+at] = v.reads(at)
	}
	return said
}

// told is what a client of DHCP is told that asks for many options, without what follows from the rest by itself, and the server's own address.
func (e example) told(v *vlan, host string) map[string]string {
	v.t.Helper()
	script, c := v.Path("udhcpc.sh"), e.clients[host]
	NewWithT(v.t).Expect(os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" != bound ] || env\n"), 0o755)).To(Succeed())
	command := []string{"timeout", "20", "env", "-i", "busybox", "udhcpc", "-q", "-n", "-t", "5", "-T", "1", "-i", "net1", "-s", script}
	for _, code := range asksFor {
		command = append(command, "-O", strconv.Itoa(code))
	}
	command = append(command, c.args...)
	var out string
	lease := func() bool {
		text, err := v.Command(host, command...).Output()
		out = string(text)
		return err == nil
	}
	if c.silent {
		return map[string]string{"served": strconv.FormatBool(lease())}
	}
	NewWithT(v.t).Eventually(lease, 30*time.Second).Should(BeTrue(), host)
	told := map[string]string{}
	for line := range strings.Lines(out) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			told[key] = value
		}
	}
	return e.plain(told)
}

// asksFor are options that the examples set, and others; udhcpc has no room to ask for all, beside a long client identifier.
var asksFor = []int{1, 3, 4, 6, 7, 12, 15, 17, 19, 23, 26, 27, 28, 33, 40, 41, 42, 44, 45, 46, 51, 58, 59, 66, 67, 119, 121, 125, 128, 129, 150, 208, 209, 210, 211, 249, 252}

func (e example) plain(told map[string]string) map[string]string {
	seconds, _ := strconv.Atoi(told["lease"])
	ip, mask := netip.MustParseAddr(told["ip"]), netip.MustParsePrefix(told["ip"]+"/"+told["mask"])
	implied := map[string]string{
		"opt58": fmt.Sprintf("%08x", seconds/2), "opt59": fmt.Sprintf("%08x", seconds*7/8), // RFC 2131, 4.4.5
		"broadcast": draft.LastOf(mask).String(), "siaddr": told["serverid"],
	}
	for key, value := range implied {
		if told[key] == value {
			delete(told, key)
		}
	}
	for _, key := range []string{"_", "PATH", "PWD", "OLDPWD", "SHLVL", "interface", "serverid", "opt53", "opt61", "mtu"} { // mtu: of the NetworkAttachmentDefinition
		delete(told, key)
	}
	if e.first != "" && !ip.Less(netip.MustParseAddr(e.first)) && !netip.MustParseAddr(e.last).Less(ip) {
		told["ip"] = "of the pool"
	}
	return told
}

// greets says what a mail server says first.
func (v *vlan) greets(l net.Listener) {
	v.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Write([]byte("220 mail\r\n"))
			_ = conn.Close()
		}
	}()
}
