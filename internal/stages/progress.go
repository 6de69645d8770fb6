package stages

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// progress says how far each of the BootStages came. It only grows, so that what a guest repeats costs no write.
type progress [len(v1alpha1.BootStages)]uint8

// How far a stage can come.
const (
	unseen = iota
	// seen: asked, or said to a backend that had no target.
	seen
	// forwarded: a target accepted the connection.
	forwarded
	// received: it ended after the worker had received something.
	received
	// receivedMuch: as many bytes as no refusal has.
	receivedMuch
)

func nth(name v1alpha1.StageName) int { return slices.Index(v1alpha1.BootStages[:], name) }

func rank(s v1alpha1.Stage) uint8 {
	switch {
	case s.ReceivedBytes >= v1alpha1.MuchReceived:
		return receivedMuch
	case s.ReceivedBytes > 0:
		return received
	case s.Result == v1alpha1.StageForwarded:
		return forwarded
	}
	return seen
}

// Name is a name as a status has it: what a guest sent is shown in terminals. It is empty if that is none.
func Name(sent string) string {
	name := strings.ToLower(strings.TrimSuffix(sent, "."))
	if !isName.MatchString(name) {
		return ""
	}
	return name
}

var isName = regexp.MustCompile(`^[a-z0-9_]([-a-z0-9_.]{0,251}[a-z0-9_])?$`)

// told is what a lease says of its holder.
func told(l *v1alpha1.DHCPLease) (p progress) {
	for name, s := range l.Stages() {
		if n := nth(name); n >= 0 { // a newer release may know more
			p[n] = rank(s)
		}
	}
	return p
}

// merged adds what was seen of a lease's holder to what its status says of it, and says whether that is any news.
func merged(l *v1alpha1.DHCPLease, saw []v1alpha1.Stage) (v1alpha1.DHCPLeaseStatus, bool) {
	known, news := l.Stages(), false
	for _, s := range saw {
		was, before := known[s.Name]
		if before && rank(s) <= rank(was) {
			continue
		}
		if news = true; before {
			s.ServerName, s.FirstTime = was.ServerName, was.FirstTime
		}
		known[s.Name] = s
	}
	status := v1alpha1.DHCPLeaseStatus{Client: l.Spec.Holder(), VMUID: l.HolderVM()}
	for _, name := range v1alpha1.BootStages {
		if s, there := known[name]; there {
			status.Stages = append(status.Stages, s)
		}
	}
	for _, s := range l.Status.Stages { // a later release's
		if _, there := known[s.Name]; there && nth(s.Name) < 0 {
			status.Stages = append(status.Stages, s)
		}
	}
	return status, news
}
