package picture

import (
	"cmp"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/step"
)

// SeenStage is a column of what daemons saw of a worker.
type SeenStage struct {
	Name v1alpha1.StageName
	// Title of the column, for people.
	Title string
}

// SeenStages are in the order of a boot.
var SeenStages = []SeenStage{
	{v1alpha1.StageNameAsked, "asked DNS"}, {v1alpha1.StageIgnitionHello, "dialled Ignition"}, {v1alpha1.StageAPIHello, "dialled the API"}, {v1alpha1.StageKonnectivityHello, "dialled konnectivity"},
}

func seen(by map[v1alpha1.StageName]v1alpha1.Stage) []step.Outcome {
	all := make([]step.Outcome, len(SeenStages))
	for i, s := range SeenStages {
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
	// Workers that asked for it.
	Workers []string
}

// mostUnmatched is how many names are shown: a worker may send any.
const mostUnmatched = 20

func unmatched(f diagnose.Facts) (all []Unmatched) {
	by := map[string][]string{}
	for i := range f.Leases.Is {
		if s, is := f.Leases.Is[i].Stages()[v1alpha1.StageUnmatchedHello]; is {
			by[s.ServerName] = append(by[s.ServerName], cmp.Or(nameOf(f.Leases.Is[i].Spec), string(f.Leases.Is[i].Spec.IP)))
		}
	}
	for name, workers := range by {
		slices.Sort(workers)
		all = append(all, Unmatched{name, workers})
	}
	slices.SortFunc(all, func(a, b Unmatched) int { return cmp.Or(len(b.Workers)-len(a.Workers), cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostUnmatched)]
}
