package proxy

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

func namesOf(all []v1alpha1.UnmatchedName) (names []string) {
	for _, u := range all {
		names = append(names, fmt.Sprintf("%s:%d", u.Name, u.Port))
	}
	return names
}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// A guest that makes up a name a second, for a day.
func TestNamesThatAGuestMakesUpCostFewWrites(t *testing.T) {
	g, u := NewWithT(t), newUnmatched()
	writes, wrote := 0, []string(nil)
	for second := range 24 * 3600 {
		now := noon.Add(time.Duration(second) * time.Second)
		u.saw(fmt.Sprintf("n%d.example.com", second), 443, now)
		if all := namesOf(u.told(intent.Intent{}, now)); fmt.Sprint(all) != fmt.Sprint(wrote) {
			writes, wrote = writes+1, all
		}
	}
	g.Expect(writes).To(BeNumerically("<=", unmatchedBurst+24*12))
	g.Expect(wrote).To(HaveLen(v1alpha1.MostUnmatched))
	g.Expect(u.last).To(HaveLen(v1alpha1.MostUnmatched))
}

func TestANameThatIsRepeatedIsWrittenWhenItsTimeIsAnother(t *testing.T) {
	g, u := NewWithT(t), newUnmatched()
	writes, last := 0, time.Time{}
	for minute := range 60 {
		now := noon.Add(time.Duration(minute) * time.Minute)
		u.saw("registry.example.com", 443, now)
		if told := u.told(intent.Intent{}, now)[0]; !told.LastTime.Time.Equal(last) {
			writes, last = writes+1, told.LastTime.Time
		}
	}
	g.Expect(writes).To(Equal(6))
	g.Expect(last).To(Equal(noon.Add(50 * time.Minute)))
}

func TestANameThatHasABackendByNowIsForgotten(t *testing.T) {
	g, u := NewWithT(t), newUnmatched()
	for _, name := range []string{"a.example.com", "b.apps.example.com", "c.example.com", "", "apps.example.com"} {
		u.saw(name, 443, noon)
	}
	u.saw("a.example.com", 6443, noon)
	at := func(port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr("192.168.100.3"), port)
	}
	served := intent.Intent{Listeners: []intent.Listener{
		{At: at(443), Routes: []intent.Route{{Backend: "a", ServerNames: []string{"a.example.com"}}, {Backend: "apps", ServerNames: []string{"*.apps.example.com"}}}},
		{At: at(6443), OnPods: true, CatchAll: "api"},
	}}
	g.Expect(namesOf(u.told(served, noon))).To(Equal([]string{"a.example.com:6443", "apps.example.com:443", "c.example.com:443"}))
	served.Listeners[0].CatchAll = "a"
	g.Expect(namesOf(u.told(served, noon))).To(Equal([]string{"a.example.com:6443"}))
}
