package approve

import (
	"fmt"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/csr"
)

// Reasons of warnings about bootstrap CSRs. Whoever holds the token in a worker's Ignition may be behind them.
const (
	// NodeRebootstrapped: a bootstrap CSR was approved for a host whose Node existed.
	NodeRebootstrapped = "NodeRebootstrapped"
	// RebootstrapRefused: such a CSR waits, because the bridge lets no existing Node bootstrap again.
	RebootstrapRefused = "RebootstrapRefused"
	// KeysDiffer: CSRs for one host have different keys.
	KeysDiffer = "KeysDiffer"
)

// Notice is about a CSR: its approval, or a warning.
type Notice struct {
	Name            string // of the CSR
	Kind            csr.Kind
	Host            string
	Created         time.Time // the CSR
	Warning         bool
	Reason, Message string // of an approval: as on the CSR
}

// Note is what an Event says about it.
func (n Notice) Note() string {
	if n.Warning {
		return n.Message
	}
	return fmt.Sprintf("certificate request %s of %s%s%s", n.Name, n.Host, approved, n.Message)
}

const approved = " is approved: "

// ApprovedHost is the host whose approval an Event's note is about, given the CSR's name; empty if it is about something else.
func ApprovedHost(note, request string) string {
	rest, ours := strings.CutPrefix(note, "certificate request "+request+" of ")
	host, _, is := strings.Cut(rest, approved)
	if !ours || !is {
		return ""
	}
	return host
}

// standing is what a warning is about; warnAgain is how soon it is repeated, because frequent CSRs are no news.
type standing struct{ reason, host string }

const warnAgain = 30 * time.Minute
