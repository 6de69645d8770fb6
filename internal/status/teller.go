package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/finding"
)

// tellAgain is well below the hour for which the API server keeps events by default.
const tellAgain = 30 * time.Minute

// mostTold bounds the findings that are reported for one object: a thousand NodePools that are too large must not cause a thousand events
// every half hour. That there are more is one event, whatever their number, and mending some makes room for the rest.
const mostTold = 20

// Teller reports findings as events about objects that are not ours, and to which we write nothing. It serves one worker.
type Teller struct {
	Events events.EventRecorder

	told map[types.NamespacedName]map[string]time.Time // by sentence
}

// Tell emits each new finding, and repeats it while it lasts unless its severity is Warning. It returns when the next is due.
func (t *Teller) Tell(about client.Object, findings []finding.Finding, now time.Time) (again time.Duration) {
	key := client.ObjectKeyFromObject(about)
	before, standing := t.told[key], map[string]time.Time{}
	for _, f := range bounded(findings) {
		sentence := f.Condition + "/" + f.Reason + ": " + f.Message
		at, known := before[sentence]
		if !known || f.Severity != finding.Warning && now.Sub(at) >= tellAgain {
			at = now
			t.Events.Eventf(about, piece(f), kindOf(f), f.Reason, f.Condition, "%s", f.Message)
		}
		standing[sentence] = at
		if left := tellAgain - now.Sub(at); f.Severity != finding.Warning && (again == 0 || left < again) {
			again = left
		}
	}
	if t.told == nil {
		t.told = map[types.NamespacedName]map[string]time.Time{}
	}
	t.told[key] = standing
	if len(standing) == 0 {
		t.Forget(key)
	}
	return again
}

// bounded are as many findings as are told, the last of them that there are more.
func bounded(findings []finding.Finding) []finding.Finding {
	if len(findings) <= mostTold {
		return findings
	}
	more := findings[mostTold]
	more.Reason, more.Message, more.Field = "MoreFindings", fmt.Sprintf("more is wrong than these %d: the rest is told when some of them are put right", mostTold), ""
	return append(findings[:mostTold:mostTold], more)
}

// piece is the part of an object that a finding is about; nil for the whole. It keeps events apart: of those that differ only in their
// note, client-go keeps the first's.
func piece(f finding.Finding) runtime.Object {
	if f.Field == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: f.Of.APIVersion, Kind: f.Of.Kind, Namespace: f.Of.Namespace, Name: f.Of.Name, FieldPath: f.Field}
}

// Forget drops an object that is gone.
func (t *Teller) Forget(key types.NamespacedName) { delete(t.told, key) }

func kindOf(f finding.Finding) string {
	if f.Severity == finding.Warning {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}
