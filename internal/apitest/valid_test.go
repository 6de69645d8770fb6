package apitest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/valid"
)

// fields is part of an object.
type fields = map[string]any

// shared is a check that the schema makes, too: an object with each example is taken exactly if the check passes.
type shared struct {
	kind     string
	examples []string
	passes   func(text string) bool
	with     func(text string) fields
}

func networks(text string) netip.Prefix { return netip.MustParsePrefix(text) }

var sharedChecks = map[string]shared{
	"Subnet": {"DNSServer", subnets, func(text string) bool { return valid.Subnet(networks(text)) }, func(text string) fields {
		return spec("networkConfig", fields{"secondaryNetworkCIDR": text, "serverIP": networks(text).Addr().String()})
	}},
	"VLAN": {"Infra", subnets, func(text string) bool { return valid.VLAN(networks(text)) }, func(text string) fields {
		return fields{"spec": fields{"networkConfig": fields{"cidr": text}, "infraComponents": fields{"dhcp": fields{"enabled": false}}}}
	}},
	"Server": {"Infra", []string{"10.0.0.53", "169.254.169.254", "fe80::1", "fd00::1", "0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"},
		func(text string) bool { return valid.Server(netip.MustParseAddr(text)) },
		func(text string) fields { return spec("networkConfig", fields{"dnsServers": []any{text}}) }},
	"Canonical": {"DNSServer", []string{"192.168.100.4", "fd00::1", "192.168.100", "FD00::1", "fd00:0::1", "::ffff:10.0.0.1", "fe80::1%eth0"},
		func(text string) bool { _, ok := valid.Canonical(text); return ok },
		func(text string) fields {
			return spec("staticEntries", []any{fields{"hostname": "a.example.com", "ip": text}})
		}},
	"Port": {"ProxyServer", []string{"0", "1", "65535", "65536"}, func(text string) bool { return valid.Port(number(text)) },
		func(text string) fields {
			return spec("backends", []any{fields{"name": "a", "port": int64(number(text)), "protocol": "TCP", "targetAddresses": []any{"10.0.0.1:1"}}})
		}},
	"LeaseTime": {"DHCPServer", []string{"1m59s", "2m", "24h", "8760h", "8760h1s"}, func(text string) bool { return valid.LeaseTime(duration(text)) },
		func(text string) fields { return spec("leaseConfig", fields{"leaseTime": text}) }},
	"CacheTTL": {"DNSServer", []string{"999ms", "1s", "168h", "168h1s"}, func(text string) bool { return valid.CacheTTL(duration(text)) },
		func(text string) fields { return spec("cacheTTL", text) }},
	"OptionCode": {"DHCPServer", numbers(0, 255), func(text string) bool { return valid.OptionCode(number(text)) },
		func(text string) fields {
			return spec("options", []any{fields{"code": int64(number(text)), "type": "String", "value": "x"}})
		}},
	"Image": {"DPUHCPBridge", images, valid.Image, func(text string) fields { return spec("ocpReleaseImage", text) }},
	"LongestInfraName": {"Infra", []string{strings.Repeat("a", valid.LongestInfraName), strings.Repeat("a", valid.LongestInfraName+1)},
		func(text string) bool { return len(text) <= valid.LongestInfraName },
		func(text string) fields { return fields{"metadata": fields{"name": text}} }},
}

var subnets = []string{
	"192.168.100.0/24", "10.0.0.0/8", "10.0.0.0/7", "0.1.0.0/16", "1.0.0.0/8", "127.0.0.0/8", "127.0.0.1/32", "169.254.7.0/24", "169.254.0.0/15", "169.0.0.0/8",
	"223.255.255.0/24", "224.0.0.0/24", "240.0.0.0/24", "255.255.255.255/32", "fd00::/64", "fd00::/8", "fc00::/7", "::1/128", "::2:0/112", "fe80::/64", "fec0::/64", "ff02::/64",
}

var images = []string{
	"quay.io/a/b:4.20.4-multi", "registry:5000/a:1", "a/b@sha256:" + strings.Repeat("0", 64), "a/b:1@sha256:" + strings.Repeat("0", 64),
	"a/b", "b:1", "a/B:1", "a/b:", "a/b@sha256:0", "a/b:1 ", "a//b:1", "a/b:-1",
}

func spec(field string, value any) fields { return fields{"spec": fields{field: value}} }

func numbers(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

func number(text string) (n int32) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

func TestTheSchemaSaysTheSame(t *testing.T) {
	base := read[map[string]map[string]any](t, "testdata/base.yaml")
	for name, check := range sharedChecks {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sides := map[bool]bool{}
			for _, text := range check.examples {
				err := api.Create(t.Context(), object(merged(base[check.kind], check.with(text))), client.DryRunAll)
				g.Expect(err == nil).To(Equal(check.passes(text)), "%s: %v", text, err)
				sides[err == nil] = true
			}
			g.Expect(sides).To(HaveLen(2), "examples of what passes and of what does not")
		})
	}
}

func TestTheSchemaHasTheSameBounds(t *testing.T) {
	g := NewWithT(t)
	schema := func(kind string, path ...string) apiextensionsv1.JSONSchemaProps {
		crd := read[apiextensionsv1.CustomResourceDefinition](t, "../../config/crd/bases/hostedcluster.densityops.com_"+strings.ToLower(kind)+"s.yaml")
		at := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, name := range path {
			if at.Items != nil {
				at = *at.Items.Schema
			}
			next, there := at.Properties[name]
			g.Expect(there).To(BeTrue(), "%s %v has no %s", kind, path, name)
			at = next
		}
		return at
	}
	for most, at := range map[*int64]int64{
		schema("Infra", "spec", "networkConfig", "dnsServers").MaxItems:                       valid.MostResolvers,
		schema("DNSServer", "spec", "staticEntries").MaxItems:                                 valid.MostStaticEntries,
		schema("DNSServer", "spec", "internalEntries").MaxItems:                               valid.MostInternalEntries,
		schema("DNSServer", "spec", "healthChecks").MaxItems:                                  valid.MostHealthChecks,
		schema("DNSServer", "spec", "upstreamDNS").MaxItems:                                   valid.MostResolvers,
		schema("DNSServer", "spec", "networkConfig", "clientCIDRs").MaxItems:                  valid.MostClientNetworks,
		schema("DNSServer", "spec", "networkConfig", "additionalServerIPs").MaxItems:          valid.MostFurtherInstances,
		schema("ProxyServer", "spec", "networkConfig", "additionalServerIPs").MaxItems:        valid.MostFurtherInstances,
		schema("DNSServer", "spec", "deniedZones").MaxItems:                                   valid.MostDeniedZones,
		schema("DHCPServer", "spec", "excludeRanges").MaxItems:                                valid.MostExclusions,
		schema("ProxyServer", "spec", "backends").MaxItems:                                    valid.MostBackends,
		schema("ProxyServer", "spec", "backends", "targetAddresses").MaxItems:                 valid.MostTargets,
		schema("ProxyServer", "spec", "backends", "alternateHostnames").MaxItems:              valid.MostAlternateHostnames,
		schema("ProxyServer", "spec", "networkConfig", "capturedAddresses").MaxItems:          valid.MostCapturedAddresses,
		schema("ProxyServer", "spec", "networkConfig", "capturedAddresses", "ports").MaxItems: valid.MostCapturedPorts,
		schema("ProxyServer", "status", "backends", "message").MaxLength:                      valid.LongestMessage,
		schema("DHCPServer", "status", "instances", "message").MaxLength:                      valid.LongestMessage,
		schema("Infra", "status", "appsIngress", "message").MaxLength:                         valid.LongestAppsMessage,
	} {
		g.Expect(most).To(HaveValue(Equal(at)))
	}
	timeout := schema("ProxyServer", "spec", "backends", "timeoutSeconds")
	g.Expect(timeout.Minimum).To(HaveValue(BeEquivalentTo(valid.ShortestConnectTimeout)))
	g.Expect(timeout.Maximum).To(HaveValue(BeEquivalentTo(valid.LongestConnectTimeout)))
	filled := func(s apiextensionsv1.JSONSchemaProps) string { return strings.Trim(string(s.Default.Raw), `"`) }
	g.Expect(duration(filled(schema("DHCPServer", "spec", "leaseConfig", "leaseTime")))).To(Equal(valid.DefaultLease))
	g.Expect(duration(filled(schema("DNSServer", "spec", "cacheTTL")))).To(Equal(valid.DefaultCacheTTL))
	g.Expect(duration(filled(schema("ProxyServer", "spec", "backends", "timeoutSeconds")) + "s")).To(Equal(valid.DefaultConnectTimeout))
}
