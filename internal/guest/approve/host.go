package approve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
)

// refusedFor is the pause after a hosted cluster refused an approval.
const refusedFor = 10 * time.Second

// decideHost decides about the CSRs of one host, one after the other, because an approval rules out the others.
func (v *approving) decideHost(ctx context.Context, host string, may []*waiting) error {
	for _, w := range may {
		known, _ := v.cards()
		v.seen.Lock()
		out := w.asked.Judge(v.factsNow(host, known)).Broken()
		if out != "" {
			w.isRefusedBy(out)
		}
		v.seen.Unlock()
		if out != "" {
			v.decideLater(w, behind)
			continue
		}
		if w.asked.Kind == csr.Serving && !v.mayServe(host) {
			v.decideLater(w, servingEvery)
			continue
		}
		err := v.decideOne(ctx, w)
		var status *apierrors.StatusError
		switch {
		case err == nil, apierrors.IsNotFound(err):
			v.setStuck(w.asked.Name, false)
		case apierrors.IsConflict(err):
			v.decideLater(w, behind)
		case errors.Is(err, errUnread):
			return nil
		case errors.As(err, &status):
			v.setStuck(w.asked.Name, true)
			v.decideLater(w, refusedFor)
			v.trouble(ApprovalRefused, fmt.Sprintf("the hosted cluster's API %s does not take an approval: it answers %s", v.want.Server, bounded.Said(status, v.access)))
		default:
			return err
		}
	}
	return nil
}

// decideOne reads the CSR and the facts anew, decides, and approves the very object that it decided about.
func (v *approving) decideOne(ctx context.Context, w *waiting) error {
	r, err := bounded.Read[certv1.CertificateSigningRequest](ctx, v.api, requests+"/"+w.asked.Name)
	if err != nil {
		return err
	}
	if asked, _ := csr.Read(r); asked.Host != w.asked.Host { // somebody recreated it for another host: these facts are not about that one
		return nil
	}
	f, err := v.readFacts(ctx, w.asked.Host)
	if err != nil {
		return err
	}
	d := csr.Decide(r, f)
	if !d.Approve {
		v.decideLater(w, w.longer())
		if broken := d.Broken(); broken == csr.RulePending {
			v.countsUntilShown(w, d)
		} else {
			v.seen.Lock()
			w.isRefusedBy(broken)
			v.seen.Unlock()
		}
		return nil
	}
	condition := d.Approval(v.by)
	r.Status.Conditions = append(r.Status.Conditions, condition)
	notices := append(againOf(r.Name, d), Notice{Name: r.Name, Kind: d.Kind, Host: d.Host, Created: r.CreationTimestamp.Time, Reason: condition.Reason, Message: condition.Message})
	if err := putApproval(ctx, v.api, r); err != nil {
		v.isNotTaken(w, d, notices, err)
		return err
	}
	v.isApproved(w, d)
	v.tell(notices)
	return nil
}

// isApproved counts an approval at once, before the watch shows it.
func (v *approving) isApproved(w *waiting, d csr.Decision) {
	countApproval(d.Kind, time.Since(w.since))
	v.countsUntilShown(w, d)
	v.seen.Lock()
	defer v.seen.Unlock()
	if d.Kind == csr.Serving {
		v.serving(d.Host).Allow()
	}
	v.queue.remove(w.asked.Name)
	v.update(func(s *State) { s.Pending = v.queue.len() })
}

// isNotTaken deals with an approval that failed. After a 5xx its outcome is unknown (Kubernetes API conventions, "HTTP Status codes"; etcd
// may store what timed out), and a conflict may be with somebody else's approval: both count until the watch shows the CSR.
func (v *approving) isNotTaken(w *waiting, d csr.Decision, notices []Notice, err error) {
	var status *apierrors.StatusError
	if errors.As(err, &status) && (apierrors.IsConflict(err) || status.ErrStatus.Code >= http.StatusInternalServerError) {
		v.countsUntilShown(w, d)
		v.seen.Lock()
		defer v.seen.Unlock()
		if _, unseen := v.queue.names[w.asked.Name]; unseen && !apierrors.IsConflict(err) {
			v.untold[w.asked.Name] = notices
		}
		return
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	v.approved.remove(d.Host, w.asked.Name)
}
