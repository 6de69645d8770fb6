package bfcfg

// A row is a file of content, by its path there and on the DPU. A zero-trust DPU's has ".zero-trust" behind its name in content.
type row struct {
	path string
	mode int // a unit has none
	kind kind
}

// kind says who gets a file, and how.
type kind int

const (
	unit        kind = 1 << iota // of systemd, enabled
	trusted                      // only where the host is trusted
	zeroTrust                    // only where it is not
	jumbo                        // only for an MTU that is not 1500
	free                         // a flavor may replace it
	plain                        // as text, in which DPF fills in the DPU
	base64ByDPF                  // what DPF fills in is base64
)

func (r row) is(k kind) bool { return r.kind&k != 0 }

// commonRows are for the live system and the target.
var commonRows = []row{}

// liveRows are for the live system.
var liveRows = []row{
	{"/etc/hostname", 0o644, plain},
}

// targetRows are for the installed system.
var targetRows = []row{}
