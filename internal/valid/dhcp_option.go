package valid

import "slices"

// OptionCode says whether a DHCP option may be given by its code. The server sets the others from fields, or the protocol uses them
// (RFC 2132).
func OptionCode(code int32) bool {
	return code >= 1 && code <= 254 && !slices.Contains(protocolOptions, code)
}

var protocolOptions = []int32{1, 3, 6, 12, 15, 26, 42, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 61, 81, 82, 119, 121}
