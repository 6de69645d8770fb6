package kubeconfig

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/unroutable"
)

// hostOf is the host of https://HOST[:PORT]; empty for anything else: another scheme, a user, a path, a query, an invalid port, a host that
// is neither a DNS name nor an address.
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

// isHere says whether a host is this machine, something on its link, or a cloud's metadata service.
func isHere(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return unroutable.Is(ip)
	}
	return namesHere(host)
}

// namesHere is isHere for names. To the C library's resolver, a name whose last label is a number is an address, in decimal, octal or
// hexadecimal, whole or in parts: 2130706433, 0x7f.1, 017700000001.
func namesHere(host string) bool {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	_, err := strconv.ParseUint(last, 0, 64)
	number := err == nil || strings.Trim(last, "0123456789") == ""
	return number || last == "localhost" || last == "localdomain" || slices.Contains(hereNames, host)
}

// hereNames are names of the loopback in hosts files, and of clouds' metadata services.
var hereNames = []string{
	"ip6-localhost", "ip6-loopback", "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
}
