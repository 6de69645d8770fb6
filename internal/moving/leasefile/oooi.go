package leasefile

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// ours reads what `oooi leases export` writes: a line of JSON for each lease, the spec of a DHCPLease. Of the virtual machine no more is kept
// than that there is one: it has another UID in another cluster, where its lease would end with the one that is not there.
func ours(content string) ([]Entry, []Problem) {
	var found last
	for number, text := range lines(content) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var spec v1alpha1.DHCPLeaseSpec
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&spec); err != nil {
			found.skip(number, "it is no line of `oooi leases export`: %v", err)
			continue
		}
		if ip, ok := found.ipv4(number, string(spec.IP)); ok {
			found.ourLease(Entry{Line: number, IP: ip, ClientID: octets(spec.ClientID), Hostname: label(spec.Hostname), Ends: spec.DurableUntilTime.UTC(), VM: spec.VMRef != nil}, spec)
		}
	}
	return found.all()
}

func (l *last) ourLease(e Entry, spec v1alpha1.DHCPLeaseSpec) {
	if spec.LastTransitionTime != nil {
		e.Since = spec.LastTransitionTime.UTC()
	}
	if spec.State != v1alpha1.LeaseBound {
		e.Over = string(spec.State)
	}
	if l.identify(&e, string(spec.MAC)) {
		l.say(e)
	}
}
