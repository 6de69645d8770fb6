// Package valid has the checks and bounds that admission, planning and daemons share. A marker in api/ cannot refer to Go, so schemas
// repeat them: TestTheSchemaSaysTheSame (internal/apitest) compares.
package valid

import "regexp"

// Port says whether a number is a TCP or UDP port.
func Port[T ~int32](n T) bool { return n >= 1 && n <= 65535 }

// Image says whether an image has its registry, and a tag or a digest: a MachineConfig should not depend on anybody's defaults.
func Image(text string) bool { return image.MatchString(text) }

var image = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}|(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?@sha256:[0-9a-f]{64})$`)
