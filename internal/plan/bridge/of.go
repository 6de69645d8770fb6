package bridge

import (
	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// Of plans one bridge. The input is complete: what is nil in it does not exist. A Frozen plan has no objects; its findings say why.
func Of(in Input) Plan {
	if in.offered() {
		return in.adopt()
	}
	return in.planned()
}

// adopt plans from what will be there once the hosted cluster is the bridge's. If nothing is refused then, it becomes the bridge's, and the next
// plan is about it; until then nothing else is written.
func (in Input) adopt() Plan {
	ours := in
	ours.HostedCluster = labelled(in.HostedCluster.DeepCopy(), in.labels())
	adopted := []Adoption{{in.HostedCluster, labels(in.Bridge)}}
	if pool := in.NodePool; pool != nil && in.alike(pool) {
		ours.NodePool = labelled(pool.DeepCopy(), in.labels())
		adopted = append([]Adoption{{pool, labels(in.Bridge)}}, adopted...)
	}
	if key := in.Key.Secret; key != nil && len(key.OwnerReferences) == 0 {
		ours.Key.Secret = labelled(key.DeepCopy(), in.labels())
		adopted = append([]Adoption{{key, secretLabels(in.Bridge)}}, adopted...)
	}
	p := ours.planned()
	p.Find(ours.unlike()...)
	after := Plan{Plan: p.Plan, Frozen: true, Image: p.Image}
	after.Objects = nil
	if !p.frozen() {
		after.Adopts = adopted
		after.Find(finding.Wait(dpuv1.ConditionReady, "HostedClusterAdopted").Say("HostedCluster %s is being taken over, as its annotation %s says", in.name(), names.AnnotationAdoptBy))
	}
	return after
}
