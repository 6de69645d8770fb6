package approve

import (
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
	Warning         bool
	Reason, Message string // of an approval: as on the CSR
}

// standing is what a warning is about; warnAgain is how soon it is repeated, because frequent CSRs are no news.
type standing struct{ reason, host string }

const warnAgain = 30 * time.Minute
