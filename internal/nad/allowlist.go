package nad

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// SysctlAllowlist is the ConfigMap with what Multus' tuning plugin admits on OpenShift.
var SysctlAllowlist = types.NamespacedName{Namespace: "openshift-multus", Name: "cni-sysctl-allowlist"}

// SysctlAllowlistKey is the key that has its lines (openshift/cluster-network-operator).
const SysctlAllowlistKey = "allowlist.conf"

// forwardingKey is what the tuning plugin is told; it puts the interface's name in place of IFNAME.
const forwardingKey = "net.ipv4.conf.IFNAME.forwarding"

// AllowsTuning says whether an allow-list, regular expressions by line, lets the tuning
// plugin turn forwarding off (containernetworking/plugins, plugins/meta/tuning: an unlisted key fails CNI ADD).
func AllowsTuning(allowlist string) bool {
	for line := range strings.SplitSeq(allowlist, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if ok, err := regexp.MatchString(line, forwardingKey); err == nil && ok {
			return true
		}
	}
	return false
}

// AllowlistLine is the line to add for AllowsTuning to hold.
func AllowlistLine() string { return "^" + regexp.QuoteMeta(forwardingKey) + "$" }
