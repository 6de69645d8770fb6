package webhook

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// cause is why a review or a connection was turned away: the metric's label and the event's action.
type cause string

const (
	tooManyWait        cause = "TooManyWait"
	turnTooLate        cause = "TurnTooLate"
	reviewTooLarge     cause = "ReviewTooLarge"
	bodyIncomplete     cause = "BodyIncomplete"
	noReview           cause = "NoReview"
	tooManyConnections cause = "TooManyConnections"
)

// why has each cause as a clause of a sentence; init registers the causes listed here.
var why = map[cause]string{
	tooManyWait:        fmt.Sprintf("more than %d reviews of one address waited for their turn", inTurn),
	turnTooLate:        fmt.Sprintf("reviews waited longer than %s for their turn", turn),
	reviewTooLarge:     fmt.Sprintf("reviews had more than %d KiB", largestReview>>10),
	bodyIncomplete:     fmt.Sprintf("reviews did not arrive as a whole in %s", arrives),
	noReview:           "requests were no AdmissionReview as API servers post them",
	tooManyConnections: fmt.Sprintf("one address began more than %d connections a second, or had more than %d, or there were more than %d in all", beginsPerSecond, connectionsFromOne, connections),
}

var turnedAway = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "oooi_webhook_turned_away_total",
	Help: "Reviews that were not judged, and connections that were not taken or were closed, by cause: too many, too slow, too large, or none of an API server's. The writes go on.",
}, []string{"cause"})

func init() {
	metrics.Registry.MustRegister(turnedAway)
	for c := range why { // Prometheus sees no increase in a counter that first appears as 1
		turnedAway.WithLabelValues(string(c))
	}
}

// tellEvery is how often one cause is reported: strangers come by the thousand, and an event is kept for an hour.
const tellEvery = 10 * time.Minute

// away reports what was turned away in the log and by an event, each cause once in tellEvery. A nil away only counts.
type away struct {
	log    logr.Logger
	events events.EventRecorder
	// about is the webhook's configuration.
	about func() *corev1.ObjectReference

	mu   sync.Mutex
	told map[cause]*telling
}

// telling is when a cause was last reported, and how many were turned away since.
type telling struct {
	at    time.Time
	since int
}

// counts one that was turned away, and reports it if that is due.
func (a *away) counts(c cause, address string) {
	turnedAway.WithLabelValues(string(c)).Inc()
	if a == nil {
		return
	}
	many, due := a.due(c)
	if !due {
		return
	}
	a.log.Info("the webhook turned reviews or connections away; the writes went on unjudged, and conditions judge them", "cause", c, "because", why[c], "count", many, "lastFrom", address)
	a.events.Eventf(a.about(), nil, corev1.EventTypeWarning, "ReviewsTurnedAway", string(c),
		"%s, the last from %s: the writes went on unjudged, and conditions judge them; if no API server has that address, see whose it is (kubectl get pods -A -o wide) and keep it from the webhook's port by a NetworkPolicy", why[c], address)
}

// due says whether a cause is due to be reported, and how many times it occurred.
func (a *away) due(c cause) (many int, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told == nil {
		a.told = map[cause]*telling{}
	}
	t := a.told[c]
	if t == nil {
		t = &telling{}
		a.told[c] = t
	}
	if t.since++; !t.at.IsZero() && time.Since(t.at) < tellEvery {
		return 0, false
	}
	many, t.at, t.since = t.since, time.Now(), 0
	return many, true
}
