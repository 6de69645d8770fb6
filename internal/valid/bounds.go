package valid

import "time"

// Times that a schema bounds or fills in. A file, which no API server completes, gets the same.
const (
	// ShortestLease and LongestLease bound a lease time.
	ShortestLease = 2 * time.Minute
	LongestLease  = 8760 * time.Hour
	// DefaultLease: an outage of an hour must not cost workers their address.
	DefaultLease = 24 * time.Hour
	// ShortestCacheTTL is the least that answers of an upstream are kept for, and DefaultCacheTTL what they are kept for at most.
	ShortestCacheTTL = time.Second
	DefaultCacheTTL  = time.Hour
	// DefaultConnectTimeout is how long the proxy tries to connect to a backend.
	DefaultConnectTimeout = 30 * time.Second
	// ShortestConnectTimeout and LongestConnectTimeout bound that, in seconds.
	ShortestConnectTimeout = 1
	LongestConnectTimeout  = 300
)

// LeaseTime says whether a lease can last so long.
func LeaseTime(d time.Duration) bool { return d >= ShortestLease && d <= LongestLease }

// ConnectTimeout says whether the proxy can try for so many seconds.
func ConnectTimeout(seconds int32) bool {
	return seconds >= ShortestConnectTimeout && seconds <= LongestConnectTimeout
}

// Lengths of lists and texts that a schema bounds.
const (
	// MostResolvers of an Infra.
	MostResolvers = 8
	// MostHostnames that a DNSServer answers on the VLAN; a wildcard counts once.
	MostHostnames = 256
	// MostDeniedZones of a DNSServer.
	MostDeniedZones = 64
	// MostExclusions are the ranges that a DHCPServer keeps from clients: more than a /23 can have.
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
	// LongestInfraName leaves room for what its Services and pods are called.
	LongestInfraName = 40
	// LongestMessage that a daemon says of an instance or a backend: the API server refuses the whole status for a longer one.
	LongestMessage = 1024
	// LongestAppsMessage that an Infra's status says of *.apps.
	LongestAppsMessage = 4096
)
