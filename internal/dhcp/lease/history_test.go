package lease

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func at(minute int) time.Time { return time.Date(2026, 11, 24, 14, minute, 0, 0, time.UTC) }

// A record of a client whose horizon is minute 30, in a state that it has since a minute.
func is(mac string, state State, since int) Record {
	return Record{Client: Client{MAC: mac}, State: state, Since: SecondsOf(at(since)), Horizon: at(30)}
}

func TestAWriteThatEndsABindingPutsItOnRecord(t *testing.T) {
	vm := func(r Record, name string) Record { r.VM = VM{Namespace: "c1", Name: name, UID: name}; return r }
	aa := is("aa", Bound, 1)
	older := is("aa", Bound, 1)
	older.Since = 0
	for name, c := range map[string]struct {
		was, now Record
		until    time.Time
		end      End
	}{
		"renewed":                       {was: aa, now: is("aa", Bound, 1)},
		"released":                      {aa, is("aa", Released, 20), at(20), EndReleased},
		"over, and released later":      {aa, is("aa", Released, 50), at(30), EndExpired},
		"its machine is gone, later":    {vm(aa, "w1"), vm(is("aa", Released, 50), "w1"), at(50), EndReleased},
		"declined":                      {aa, is("aa", Declined, 20), at(20), EndDeclined},
		"over, and another's":           {aa, is("bb", Bound, 50), at(30), EndExpired},
		"another MAC of the machine":    {vm(aa, "w1"), vm(is("bb", Bound, 20), "w1"), at(20), EndReplaced},
		"the MAC is another machine's":  {vm(aa, "w1"), vm(is("aa", Bound, 20), "w2"), at(20), EndReplaced},
		"its machine is seen late":      {was: aa, now: vm(is("aa", Bound, 1), "w1")},
		"released before, and dropped":  {was: is("aa", Released, 20), now: is("aa", Released, 20)},
		"released before, and bound":    {was: is("aa", Released, 20), now: is("bb", Bound, 25)},
		"declined before, and bound":    {was: is("aa", Declined, 20), now: is("bb", Bound, 55)},
		"bound by an older release":     {older, is("aa", Released, 20), at(20), EndReleased},
		"the first lease of an address": {was: Record{}, now: aa},
	} {
		t.Run(name, func(t *testing.T) {
			g, before := NewWithT(t), []Past{{Client: Client{MAC: "zz"}, End: EndReleased}}
			after := Succession(before, c.was, c.now)
			if c.end == "" {
				g.Expect(after).To(Equal(before))
				return
			}
			g.Expect(after).To(Equal([]Past{before[0], {Client: c.was.Client, VM: c.was.VM, From: c.was.Since.Time(), Until: c.until, End: c.end}}))
		})
	}
}

func TestTheOldestIsForgottenFirst(t *testing.T) {
	g, past := NewWithT(t), []Past(nil)
	for minute := range 2*Kept + 1 {
		was := is("aa", Bound, minute)
		was.Horizon = at(minute + 30)
		past = Succession(past, was, is("aa", Released, minute))
		g.Expect(past).To(HaveLen(min(minute+1, Kept)))
		g.Expect(past[len(past)-1].Until).To(Equal(at(minute)))
	}
	g.Expect(past[0].Until).To(Equal(at(Kept + 1)))
	few := append(make([]Past, 0, 9), past[0])
	one := Succession(few, is("bb", Bound, 1), is("bb", Released, 2))
	Succession(few, is("cc", Bound, 1), is("cc", Released, 2))
	g.Expect(one[1].Client.MAC).To(Equal("bb"), "a write that was refused leaves no trace")
}
