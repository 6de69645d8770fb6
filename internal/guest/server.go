package guest

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hostOf is the host of https://HOST[:PORT]; empty for anything else: another scheme, a user, a path, a query, a port that
// is none, a host that is neither a DNS name nor an address.
func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return ""
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) || strings.HasSuffix(u.Host, ":") {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if _, err := netip.ParseAddr(host); err != nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
		return ""
	}
	return host
}

// metadata services that lie outside the link-local networks: Alibaba's, Azure's, Oracle's, Amazon's.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:ec2::254"),
}

// carriers are IPv6 networks whose addresses carry an IPv4 address, and after how many bytes: IPv4-compatible (RFC 4291
// §2.5.5.1), NAT64 (RFC 6052 §2.1), 6to4 (RFC 3056 §2). IPv4-mapped ones are unmapped before.
var carriers = []struct {
	netip.Prefix
	after int
}{
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
}

// isHere says whether a host is this machine, something on its link, or a cloud's metadata service.
func isHere(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return namesHere(host)
	}
	if ip.Zone() != "" {
		return true
	}
	ip = ip.Unmap()
	for _, c := range carriers {
		if c.Contains(ip) {
			bytes := ip.As16()
			if inner := netip.AddrFrom4([4]byte(bytes[c.after : c.after+4])); isHere(inner.String()) {
				return true
			}
		}
	}
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		ip.Is4() && (ip.As4()[0] == 0 || ip.As4()[0] >= 240) || slices.Contains(metadata, ip)
}

// namesHere judges names. One whose last label is a number is an address to the C library's resolver, in decimal, octal or
// hexadecimal, whole or in parts: 2130706433, 0x7f.1, 017700000001.
func namesHere(host string) bool {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	_, err := strconv.ParseUint(last, 0, 64)
	number := err == nil || strings.Trim(last, "0123456789") == ""
	return number || last == "localhost" || last == "localdomain" || slices.Contains(hereNames, host)
}

// hereNames are what hosts files call the loopback, and clouds their metadata services.
var hereNames = []string{
	"ip6-localhost", "ip6-loopback", "metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal",
}
