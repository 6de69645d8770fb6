package picture

import (
	"slices"

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

// seenStages are in the order of a boot. The last is shown once it is of any worker: of machines that are not virtual it is never known.
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
