package valid

import "time"

// Durations that a schema bounds or defaults. A file, which no API server completes, gets the same.
const (
	// ShortestLease and LongestLease bound a lease time.
	ShortestLease = 2 * time.Minute
	LongestLease  = 8760 * time.Hour
	// DefaultLease: an outage of an hour must not cost workers their addresses.
	DefaultLease = 24 * time.Hour
	// ShortestCacheTTL is how long answers of an upstream are cached at least, and LongestCacheTTL and DefaultCacheTTL how long at most.
	ShortestCacheTTL = time.Second
	LongestCacheTTL  = 168 * time.Hour
	DefaultCacheTTL  = time.Hour
	// DefaultConnectTimeout is how long the proxy tries to connect to a backend.
	DefaultConnectTimeout = 30 * time.Second
	// ShortestConnectTimeout and LongestConnectTimeout bound it, in seconds.
	ShortestConnectTimeout = 1
	LongestConnectTimeout  = 300
)

// LeaseTime says whether a lease can last this long.
func LeaseTime(d time.Duration) bool { return d >= ShortestLease && d <= LongestLease }

// CacheTTL says whether answers can be cached this long.
func CacheTTL(d time.Duration) bool { return d >= ShortestCacheTTL && d <= LongestCacheTTL }

// ConnectTimeout says whether the proxy can try for this many seconds.
func ConnectTimeout(seconds int32) bool {
	return seconds >= ShortestConnectTimeout && seconds <= LongestConnectTimeout
}

// Lengths of lists and strings that a schema bounds.
const (
	// MostResolvers of an Infra.
	MostResolvers = 8
	// MostHostnames that a DNSServer answers on the VLAN; a wildcard counts as one.
	MostHostnames = 256
	// MostStaticEntries of a DNSServer: each hostname at both proxies.
	MostStaticEntries = 2 * MostHostnames
	// MostInternalEntries of a DNSServer.
	MostInternalEntries = 256
	// MostHealthChecks of a DNSServer.
	MostHealthChecks = 4
	// MostClientNetworks of a DNSServer.
	MostClientNetworks = 32
	// MostFurtherInstances of a daemon, beside the first.
	MostFurtherInstances = 1
	// MostDeniedZones of a DNSServer.
	MostDeniedZones = 64
	// MostExclusions are the ranges that a DHCPServer excludes: more than a /23 can have.
	MostExclusions = 256
	// MostBackends of a ProxyServer.
	MostBackends = 64
	// MostTargets of a backend of a ProxyServer.
	MostTargets = 64
	// MostAlternateHostnames of a backend of a ProxyServer.
	MostAlternateHostnames = 32
	// MostCapturedAddresses of a ProxyServer.
	MostCapturedAddresses = 8
	// MostCapturedPorts of a captured address.
	MostCapturedPorts = 16
	// LongestInfraName leaves room for the names of its Services and pods.
	LongestInfraName = 40
	// LongestMessage about an instance or a backend: with a longer one the API server refuses a daemon's whole status.
	LongestMessage = 1024
	// LongestAppsMessage about *.apps in an Infra's status.
	LongestAppsMessage = 4096
)
