package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// RefusalReason is that of the Warning event by which HyperShift's ignition server says whom it refused: it is on the Secret token-POOL-HASH of
// the config that the request named (v0.1.60, ignition-server/cmd/start.go).
const RefusalReason = "GetPayloadFailed"

// unauthorized are its messages about requests that it answered with 401, on which Ignition gives up.
var unauthorized = []string{"Bad header", "Token invalid"}

// unknownToken is that about those that it answered with 511, on which Ignition tries again.
const unknownToken = "Token not found in cache"

// payloadTakes is how long the ignition server may answer 511 to a new machine, and another machine's answer be the newest of them: it knows a token
// only once it has made the config, and expects that to take up to a minute (v0.1.60, ignition-server/controllers/tokensecret_controller.go, PayloadGenerationSeconds).
const payloadTakes = 3 * time.Minute

// hasNoConfig says whether all that a worker ever received from Ignition is too little to be a config.
func (w worker) hasNoConfig() bool {
	if w.lease == nil {
		return false
	}
	hello := w.lease.Stages()[v1alpha1.StageIgnitionHello]
	return hello.ReceivedBytes > 0 && hello.ReceivedBytes < v1alpha1.MuchReceived
}

// refused tells of a worker that has no config what its NodePool's machines were answered last since it started. The event names no machine, so
// it says nothing of one that has a config, or has not asked for it.
func (f Facts) refused(w worker, pool string) (is step.Step, found bool) {
	if !w.hasNoConfig() {
		return is, false
	}
	if f.Refusals.Unread != "" {
		return unread("whether the ignition server refused it: its events", f.Refusals.Unread), true
	}
	last, newest := w.started(), corev1.Event{}
	for _, e := range f.Refusals.Is {
		if at := lastSeen(e.LastTimestamp, e.EventTime); isTokenOf(pool, e.InvolvedObject.Name) && at.After(last) {
			last, newest = at, e
		}
	}
	if w.runs(f) < payloadTakes {
		return is, false
	}
	return f.refusal(w, newest, last)
}

func (f Facts) refusal(w worker, e corev1.Event, at time.Time) (is step.Step, judged bool) {
	secret := e.InvolvedObject.Name
	switch {
	case slices.Contains(unauthorized, e.Message):
		userData := "user-data-" + strings.TrimPrefix(secret, "token-")
		return fail(tokenRefused, fmt.Sprintf("the user data has to send the header Authorization with Bearer and the token in base64, as Secret %s/%s does; %s", f.controlPlane(), userData, remake(f, w)),
			"the ignition server answered 401 (%s) %s to a machine with the config of Secret %s, and this one has received no config", e.Message, w.after(at), secret), true
	case e.Message == unknownToken:
		return fail(tokenRefused, fmt.Sprintf("kubectl -n %s logs deployment/ignition-server says whether it made the config; if it did, the machine has an older token: %s", f.controlPlane(), remake(f, w)),
			"the ignition server answered 511 (%s) %s to a machine with the config of Secret %s, and this one has received no config", e.Message, w.after(at), secret), true
	}
	return is, false
}
