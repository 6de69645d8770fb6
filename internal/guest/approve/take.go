package approve

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/parts"
)

// mostOfRequest is how many parts a CSR may have to be approved, so that with its approval and what else we write to it, it stays far below
// bounded.MostParts: of a larger one the approval would not be read. A kubelet's has some fifty.
const mostOfRequest = 1000

// errHidden ends the visit, so that the next begins with a list of all CSRs.
var errHidden = errors.New("most certificate requests of a host are gone, of which more had come than are kept: all are read anew")

// take reads one CSR. One that cannot be decoded is ignored, so that it does not block the others.
func (v *approving) take(event watch.EventType, object []byte) (err error) {
	var r certv1.CertificateSigningRequest
	if json.Unmarshal(object, &r) != nil {
		return nil
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	asker, waited := v.queue.names[r.Name]
	if waited {
		v.queue.remove(r.Name)
		v.approved.remove(asker, r.Name) // see countsUntilShown
		v.fresh[asker] = true
	}
	delete(v.stuck, r.Name)
	defer delete(v.untold, r.Name)
	host, approval, approved := csr.Approved(&r)
	switch {
	case event == watch.Deleted:
		if v.approved.remove(host, r.Name); v.queue.comesToLight(asker) {
			err = errHidden
		}
	case approved:
		err = v.approved.add(host, approval)
		v.notices = append(v.notices, v.untold[r.Name]...)
	case parts.Of(object) <= mostOfRequest:
		v.takeNew(&r)
	case csr.IsOurs(&r):
		countDecision("", "NotTooLarge")
	}
	v.update(func(s *State) { s.Pending, s.Beyond = v.queue.len(), v.beyond() })
	return cmp.Or(err, v.count())
}

// takeNew puts a well-formed CSR of ours into the queue, if nobody has decided about it.
func (v *approving) takeNew(r *certv1.CertificateSigningRequest) {
	if !csr.IsOurs(r) {
		return
	}
	asked, form := csr.Read(r)
	switch broken := csr.Broken(form); broken {
	case "":
		v.queue.add(asked, time.Now())
		v.fresh[asked.Host] = true
	case csr.RulePending:
	default:
		countDecision(asked.Kind, broken)
	}
}
