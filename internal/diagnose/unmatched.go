package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// Unmatched is a server name that no backend of the proxy has; empty if workers sent none.
type Unmatched struct {
	Name string
	// Port on which it was asked for; 0 if only leases tell of it.
	Port int32
	// Last is when the proxy was asked for it last, to ten minutes; zero if only leases tell of it.
	Last time.Time
	// Workers that asked for it, as far as it was the first such name of theirs.
	Workers []string
}

// mostUnmatched is how many names are shown: a worker may send any.
const mostUnmatched = 20

// UnmatchedNames are those that the proxy was asked for last, and then those of leases, the most frequent first.
func UnmatchedNames(f Facts) (all []Unmatched) {
	by := map[string][]string{}
	for i := range f.Leases.Is {
		if s, is := f.Leases.Is[i].Stages()[v1alpha1.StageUnmatchedHello]; is {
			by[s.ServerName] = append(by[s.ServerName], cmp.Or(f.Leases.Is[i].Spec.HolderName(), string(f.Leases.Is[i].Spec.IP)))
		}
	}
	for _, workers := range by {
		slices.Sort(workers)
	}
	if f.Proxy.Is != nil {
		for _, u := range f.Proxy.Is.Status.UnmatchedNames {
			i := slices.IndexFunc(all, func(other Unmatched) bool { return other.Name == u.Name && other.Port == int32(u.Port) })
			switch {
			case i < 0:
				all = append(all, Unmatched{u.Name, int32(u.Port), u.LastTime.Time, by[u.Name]})
			case u.LastTime.After(all[i].Last): // another instance was asked later
				all[i].Last = u.LastTime.Time
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Unmatched) int { return b.Last.Compare(a.Last) })
	newest := len(all)
	for name, workers := range by {
		if !slices.ContainsFunc(all[:newest], func(u Unmatched) bool { return u.Name == name }) {
			all = append(all, Unmatched{Name: name, Workers: workers})
		}
	}
	slices.SortFunc(all[newest:], func(a, b Unmatched) int { return cmp.Or(len(b.Workers)-len(a.Workers), cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostUnmatched)]
}

// Admits is what an Infra says to have the proxy take connections with this server name; empty if no endpoint can have it. Where they lead to, only
// the admin knows: what is in capitals is refused until it is replaced.
func (u Unmatched) Admits() string {
	if len(validation.IsDNS1123Subdomain(u.Name)) > 0 {
		return ""
	}
	name := strings.ReplaceAll(u.Name, ".", "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	port := cmp.Or(u.Port, 443)
	return fmt.Sprintf("spec:\n  extraEndpoints:\n  - name: %q\n    hostnames: [%q]\n    port: %d\n    protocol: TLS\n    target: {service: NAME, namespace: NAMESPACE, port: %d}", name, u.Name, port, port)
}

// Asked says when the name was asked for last, and where; empty if only leases tell of it.
func (u Unmatched) Asked() string {
	if u.Last.IsZero() {
		return ""
	}
	return fmt.Sprintf("port %d, %s", u.Port, u.Last.UTC().Format("2006-01-02 15:04Z"))
}

// Admitted is the YAML for the first name that an endpoint can have; empty if there is none.
func Admitted(all []Unmatched) string {
	for _, u := range all {
		if text := u.Admits(); text != "" {
			return text
		}
	}
	return ""
}

// asked adds to what works of the proxy for which server names it was asked and has no backend, if one of these workers sent such a name.
func (f Facts) asked(steps []step.Step, by ...worker) []step.Step {
	i := slices.IndexFunc(steps, func(s step.Step) bool { return s.Name == "proxy" && s.Outcome == step.OK })
	if i < 0 || !slices.ContainsFunc(by, worker.sentUnmatched) {
		return steps
	}
	all := UnmatchedNames(f)
	var told []string
	for _, u := range all {
		text := cmp.Or(u.Name, "no name")
		if at := u.Asked(); at != "" {
			text += " (" + at + ")"
		}
		told = append(told, text)
	}
	s := &steps[i]
	s.Says += ". Server names that it was asked for, and has no backend for: " + strings.Join(told, ", ")
	if s.YAML = Admitted(all); s.YAML != "" {
		s.Says += ". If workers need one, add it to the Infra, here the first; target says where it leads:"
	}
	return steps
}

func (w worker) sentUnmatched() bool {
	if w.lease == nil {
		return false
	}
	_, did := w.lease.Stages()[v1alpha1.StageUnmatchedHello]
	return did
}
