package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/step"
)

// SeenStage is a column of what daemons, or the operator, saw of a worker.
type SeenStage struct {
	Name v1alpha1.StageName
	// Title of the column, for people.
	Title string
}

// seenStages are in the order of a boot. The last is of Infras whose Nodes the operator watches, and of no others.
var seenStages = [...]SeenStage{
	{v1alpha1.StageNameAsked, "asked DNS"}, {v1alpha1.StageIgnitionHello, "dialled Ignition"}, {v1alpha1.StageAPIHello, "dialled the API"}, {v1alpha1.StageKonnectivityHello, "dialled konnectivity"},
	{v1alpha1.StageNodeReady, "became Ready"},
}

func seenOf(paths []diagnose.Path) []SeenStage {
	all := len(seenStages)
	if !slices.ContainsFunc(paths, func(p diagnose.Path) bool { _, is := p.Seen[v1alpha1.StageNodeReady]; return is }) {
		all--
	}
	return seenStages[:all]
}

func seen(by map[v1alpha1.StageName]v1alpha1.Stage, stages []SeenStage) []step.Outcome {
	all := make([]step.Outcome, len(stages))
	for i, s := range stages {
		switch stage, is := by[s.Name]; {
		case is && stage.Result == v1alpha1.StageNoTarget:
			all[i] = step.Fail
		case is:
			all[i] = step.OK
		}
	}
	return all
}

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

// unmatched are those that the proxy was asked for last, and then those of leases, the most frequent first.
func unmatched(f diagnose.Facts) (all []Unmatched) {
	by := map[string][]string{}
	for i := range f.Leases.Is {
		if s, is := f.Leases.Is[i].Stages()[v1alpha1.StageUnmatchedHello]; is {
			by[s.ServerName] = append(by[s.ServerName], cmp.Or(nameOf(f.Leases.Is[i].Spec), string(f.Leases.Is[i].Spec.IP)))
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

// Admitted is the YAML for the first name that an endpoint can have; empty if there is none.
func (p Page) Admitted() string {
	for _, u := range p.Unmatched {
		if text := u.Admits(); text != "" {
			return text
		}
	}
	return ""
}

// Asked says when the name was asked for last, and where; empty if only leases tell of it.
func (u Unmatched) Asked() string {
	if u.Last.IsZero() {
		return ""
	}
	return fmt.Sprintf("port %d, %s", u.Port, u.Last.UTC().Format("2006-01-02 15:04Z"))
}
