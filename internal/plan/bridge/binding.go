package bridge

import (
	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/permit"
)

const (
	fieldCluster = "spec.dpuClusterRef"
	fieldType    = "spec.clusterType"
)

// binding says what keeps the bridge from its DPUCluster: nothing, when it is bound. The first reason is told alone; those after it
// follow from it or may not be looked at.
func (in Input) binding() []finding.Finding {
	key, cluster := ClusterKey(in.Bridge), in.DPUCluster
	waiting := func(reason string) finding.Builder {
		return finding.Wait(dpuv1.ConditionDPUClusterBound, reason).At(fieldCluster)
	}
	wrong := func(reason, field string) finding.Builder {
		return finding.Wrong(dpuv1.ConditionDPUClusterBound, reason).At(field)
	}
	switch {
	case !in.Served.DPF:
		return one(waiting("DPFMissing").Say("the cluster does not serve DPUClusters (%s): install the DPF operator; it is noticed by itself", dpf.GroupVersion))
	case cluster == nil && in.wasBound():
		return one(waiting("DPUClusterDeleted").Say("DPUCluster %s is gone: approval and injection are stopped, and the hosted cluster is kept (dpuClusterDeletionPolicy: Retain); make the DPUCluster again, or delete this bridge", key))
	case len(in.Refused()) > 0:
		return in.Refused()
	case cluster == nil:
		return one(waiting("DPUClusterNotFound").Say("waiting for DPUCluster %s", key))
	case cluster.DeletionTimestamp != nil:
		return one(waiting("DPUClusterDeleted").Say("DPUCluster %s is being deleted: approval and injection are stopped", key))
	case cluster.Spec.Type == dpf.TypeKamaji:
		return one(wrong("TypeKamaji", fieldType).Say("DPUCluster %s is of type kamaji: DPF makes its control plane itself; use one of another type, e.g. static", key))
	case in.Bridge.Spec.ClusterType != "" && in.Bridge.Spec.ClusterType != cluster.Spec.Type:
		return one(wrong("TypeMismatch", fieldType).Say("clusterType is %s, and DPUCluster %s is of type %s; they must be equal, and neither can be changed: make one of them anew", in.Bridge.Spec.ClusterType, key, cluster.Spec.Type))
	case in.preceded():
		return one(wrong("DPUClusterTaken", fieldCluster).Say("an older DPUHCPBridge is there for DPUCluster %s, and there is one for each; delete one of them", key))
	case cluster.Spec.Kubeconfig != "" && cluster.Spec.Kubeconfig != InjectedKey(in.Bridge).Name:
		return one(wrong("KubeconfigTaken", fieldCluster).Say("DPUCluster %s has a kubeconfig already, Secret %s, which is not of this bridge: it belongs to another cluster; remove spec.kubeconfig, or refer to another DPUCluster", key, cluster.Spec.Kubeconfig))
	}
	return nil
}

func one(f finding.Finding) []finding.Finding { return []finding.Finding{f} }

// wasBound: the hosted cluster is made only for a DPUCluster that was there.
func (in Input) wasBound() bool { return in.cluster() != nil }

// Refused says why the reference may not leave the bridge's namespace. With it, nothing of the DPUCluster's namespace may be read.
func (in Input) Refused() []finding.Finding {
	refused := permit.Check(reference(in.Bridge, in.DPUCluster))
	for i := range refused {
		refused[i].Condition = dpuv1.ConditionDPUClusterBound
	}
	return refused
}

// preceded says whether an older bridge, which may refer to the DPUCluster, does: a stranger's claim is none.
func (in Input) preceded() bool {
	for i := range in.Rivals {
		if rival := &in.Rivals[i]; older(rival, in.Bridge) && reference(rival, in.DPUCluster).Allowed() {
			return true
		}
	}
	return false
}

func reference(b *dpuv1.DPUHCPBridge, cluster *dpf.DPUCluster) permit.Reference {
	key := ClusterKey(b)
	r := permit.Reference{Field: "dpuClusterRef", Path: fieldCluster, From: b.Namespace, Kind: "dpucluster", Namespace: key.Namespace, Name: key.Name}
	if cluster != nil {
		r.Annotations = cluster.Annotations
	}
	return r
}
