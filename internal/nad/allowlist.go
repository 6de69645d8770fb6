package nad

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// SysctlAllowlist is the ConfigMap with the sysctls that Multus' tuning plugin allows on OpenShift.
var SysctlAllowlist = types.NamespacedName{Namespace: "openshift-multus", Name: "cni-sysctl-allowlist"}

// SysctlAllowlistKey is the key with the list's lines (openshift/cluster-network-operator).
const SysctlAllowlistKey = "allowlist.conf"

// forwardingKey is how the tuning plugin's configuration names the sysctl; the plugin replaces IFNAME by the interface's name.
const forwardingKey = "net.ipv4.conf.IFNAME.forwarding"

// AllowsTuning says whether an allow-list, one regular expression per line, lets the tuning plugin turn forwarding off
// (containernetworking/plugins, plugins/meta/tuning: an unlisted key fails CNI ADD).
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

// AllowlistLine is the line that makes AllowsTuning true.
func AllowlistLine() string { return "^" + regexp.QuoteMeta(forwardingKey) + "$" }
