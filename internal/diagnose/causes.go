package diagnose

// Causes, which are anchors of Page.
const (
	// booting is no fault: a worker stands here, and may still go on.
	booting = "booting"

	notRunning     = "not-running"
	duplicateMAC   = "duplicate-mac"
	otherNetwork   = "other-network"
	podNetwork     = "pod-network"
	infraRefused   = "infra-refused"
	dhcpDown       = "dhcp-down"
	noAddress      = "no-address"
	foreignServer  = "foreign-server"
	noDiscover     = "no-discover"
	addressInUse   = "address-in-use"
	leaseEnded     = "lease-ended"
	wrongHostname  = "wrong-hostname"
	dnsDown        = "dns-down"
	endpointMoved  = "endpoint-moved"
	nameMissing    = "name-missing"
	proxyDown      = "proxy-down"
	noRoute        = "no-route"
	policyMissing  = "network-policy"
	backendDown    = "backend-down"
	noHandshake    = "no-handshake"
	notYetValid    = "certificate-not-yet-valid"
	expired        = "certificate-expired"
	anotherName    = "certificate-for-another-name"
	ignitionDown   = "ignition-down"
	ignitionFails  = "ignition-fails"
	noToken        = "no-token"
	tokenExpired   = "token-expired"
	tokenRefused   = "token-refused"
	payloadInvalid = "payload-invalid"
	noRequest      = "no-csr"
	otherName      = "csr-for-another-name"
	requestPending = "csr-pending"
	requestDenied  = "csr-denied"
	noNode         = "no-node"
	nodeSilent     = "kubelet-silent"
	nodeNotReady   = "node-not-ready"
	noTunnel       = "no-tunnel"
)

// Causes are all of them, in the order of the boot.
var Causes = []string{
	booting, notRunning, duplicateMAC, otherNetwork, podNetwork, infraRefused, dhcpDown, noAddress, foreignServer, noDiscover, addressInUse, leaseEnded,
	wrongHostname, dnsDown, endpointMoved, nameMissing, proxyDown, noRoute, policyMissing, backendDown,
	noHandshake, notYetValid, expired, anotherName, payloadInvalid, ignitionDown, ignitionFails, noToken, tokenExpired, tokenRefused,
	noRequest, otherName, requestPending, requestDenied, noNode, nodeSilent, nodeNotReady, noTunnel,
}
