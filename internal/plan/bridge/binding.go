package bridge

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

const (
	fieldCluster = "spec.dpuClusterRef"
	fieldType    = "spec.clusterType"
)

// binding says why the bridge is not bound to its DPUCluster; nothing if it is. It reports only the first reason: the others follow from it,
// or may not be evaluated.
func (in Input) binding() []finding.Finding {
	key, cluster := ClusterKey(in.Bridge), in.DPUCluster
	waiting := func(reason string) finding.Builder {
		return finding.Wait(dpuv1.ConditionDPUClusterBound, reason).At(fieldCluster)
	}
	refuse := func(reason, field string) finding.Builder {
		return finding.Refuse(dpuv1.ConditionDPUClusterBound, reason).At(field)
	}
	switch {
	case !in.Served.DPF:
		return one(waiting("DPFNotInstalled").Say("the cluster does not serve DPUClusters (%s): install the DPF operator; the bridge notices it", dpf.GroupVersion))
	case cluster == nil && in.wasBound():
		return one(waiting("DPUClusterDeleted").Say("DPUCluster %s is gone: approval and injection have stopped, and the hosted cluster is kept (dpuClusterDeletionPolicy: Retain); recreate the DPUCluster, or delete this bridge", key))
	case len(in.Refusals()) > 0:
		return in.Refusals()
	case cluster == nil:
		return one(waiting("DPUClusterNotFound").Say("DPUCluster %s does not exist: create it, or refer to an existing one (kubectl get dpuclusters -A)", key))
	case cluster.DeletionTimestamp != nil:
		return one(waiting("DPUClusterDeleted").Say("DPUCluster %s is being deleted: approval and injection have stopped", key))
	case cluster.Spec.Type == dpf.TypeKamaji:
		return one(refuse("TypeUnsupported", fieldCluster).Say("DPUCluster %s has type kamaji, whose control plane DPF itself creates; use one of another type, e.g. static", key))
	case in.clusterType() != cluster.Spec.Type:
		return one(refuse("TypeMismatch", fieldType).Say("the bridge is for type %s, and DPUCluster %s is of type %s; they must be equal, and neither can be changed: recreate one of them", in.clusterType(), key, cluster.Spec.Type))
	case in.preceding() != nil:
		return one(refuse("DPUClusterTaken", fieldCluster).Say("%s already has DPUCluster %s, which can have only one; delete one of them", in.nameOf(*in.preceding()), key))
	case cluster.Spec.Kubeconfig != "" && cluster.Spec.Kubeconfig != InjectedKey(in.Bridge).Name:
		has := "a kubeconfig"
		if key.Namespace == in.Bridge.Namespace {
			has = "a kubeconfig, Secret " + cluster.Spec.Kubeconfig
		}
		return one(refuse("KubeconfigTaken", fieldCluster).Say("DPUCluster %s already has %s, which does not belong to this bridge but to another cluster; remove spec.kubeconfig, or refer to another DPUCluster", key, has))
	}
	return nil
}

// nameOf names a bridge in our namespace; another may be another tenant's.
func (in Input) nameOf(other types.NamespacedName) string {
	if other.Namespace == in.Bridge.Namespace {
		return "DPUHCPBridge " + other.Name
	}
	return "another DPUHCPBridge"
}

func one(f finding.Finding) []finding.Finding { return []finding.Finding{f} }

// wasBound says whether the DPUCluster existed before: we create a hosted cluster only for one that exists, though the bridge's author could
// create it too.
func (in Input) wasBound() bool { return in.cluster() != nil && in.wasGranted() }

// wasGranted says whether the bridge could refer to its DPUCluster while that existed, so that it may say that it is gone. For another
// namespace the status does not suffice, because somebody else may have written it; the Secret there does, which only we create.
func (in Input) wasGranted() bool {
	own := ClusterKey(in.Bridge).Namespace == in.Bridge.Namespace
	return own || in.SaysItWasBound() && in.Injected.Secret != nil && in.handed(in.Injected.Secret)
}

// handed says whether a Secret was created for the DPUCluster that the bridge refers to. An earlier bridge with the same name may have
// referred to another.
func (in Input) handed(s *corev1.Secret) bool {
	return in.Owns(s) && s.Annotations[names.AnnotationDPUCluster] == ClusterKey(in.Bridge).Name
}

// SaysItWasBound is what the status says, whoever wrote it.
func (in Input) SaysItWasBound() bool {
	said := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionDPUClusterBound)
	return said != nil && (said.Reason == "Bound" || said.Reason == "DPUClusterDeleted")
}

// clusterType is the type that the DPUCluster must have: the one that the bridge names, or else the one that it was first bound with.
func (in Input) clusterType() string {
	first := ""
	if hc := in.cluster(); hc != nil {
		first = hc.Annotations[names.AnnotationClusterType]
	}
	return cmp.Or(in.Bridge.Spec.ClusterType, first, in.DPUCluster.Spec.Type)
}

// Refusals say why the bridge may not refer to a DPUCluster in another namespace. If there is one, nothing of that namespace may be read.
func (in Input) Refusals() []finding.Finding {
	refused := refgrant.Check(reference(in.Bridge, in.DPUCluster))
	for i := range refused {
		refused[i].Condition = dpuv1.ConditionDPUClusterBound
	}
	return refused
}

// preceding is another bridge that has the DPUCluster, and has a reference grant: without that, it does not count.
func (in Input) preceding() *types.NamespacedName {
	for _, r := range in.Rivals {
		rival := in.rival(r)
		if ClusterKey(rival.Bridge) == ClusterKey(in.Bridge) && rival.precedes(in) && reference(rival.Bridge, in.DPUCluster).Allowed() {
			return &types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
		}
	}
	return nil
}

// rival is the input of another bridge, as far as it tells what that has.
func (in Input) rival(r Rival) Input {
	return Input{Bridge: r.DPUHCPBridge, HostedCluster: r.HostedCluster, Pool: r.Pool, DPUCluster: in.DPUCluster, Exists: in.Exists}
}

// precedes: the older bridge precedes, but takes nothing from one that has more, because an older one may get its reference grant later, and
// of two of the same second nobody knows which is older.
func (in Input) precedes(other Input) bool {
	if mine, theirs := in.holds(), other.holds(); mine != theirs {
		return mine > theirs
	}
	return input.Older(in.Bridge, other.Bridge)
}

// holds says how much of the DPUCluster the bridge has: 2 if DPF uses its kubeconfig, 1 if it has a hosted cluster.
func (in Input) holds() int {
	switch {
	case in.DPUCluster.Spec.Kubeconfig == InjectedKey(in.Bridge).Name:
		return 2
	case in.cluster() != nil:
		return 1
	}
	return 0
}

func reference(b *dpuv1.DPUHCPBridge, cluster *dpf.DPUCluster) refgrant.Reference {
	key := ClusterKey(b)
	r := refgrant.Reference{Field: "dpuClusterRef", Path: fieldCluster, From: b.Namespace, Kind: "dpucluster", Namespace: key.Namespace, Name: key.Name}
	if cluster != nil {
		r.Annotations = cluster.Annotations
	}
	return r
}
