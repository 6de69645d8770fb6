package approve

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/csr"
)

// Request is a CSR of a kubelet that is told of.
type Request struct {
	Name, Host string
	Kind       csr.Kind
	Created    time.Time
	Approved   time.Time // zero while it waits
	RefusedBy  string    // the rule; empty: approved, or not judged yet
}

// mostTold wait, and as many are approved: they are written to the management cluster, and whoever has the token in a DPU's Ignition makes requests as
// often as they like.
const mostTold = 20

// unspeakable is what no API server sends, and the management cluster's would refuse.
func unspeakable(r Request) bool {
	return len(validation.IsDNS1123Subdomain(r.Name)) > 0 || len(validation.IsDNS1123Subdomain(r.Host)) > 0 || r.Created.IsZero() || r.Created.Year() > 9999 || r.Created.Year() < 1
}

// asStored is a time as the management cluster keeps it: with more, no status would be the one that was written.
func asStored(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
