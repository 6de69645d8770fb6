package bridge

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// Remains are what still exists of a bridge that is being deleted, read from the API server, not from a cache: HostedCluster, NodePool and
// DPUCluster of its Input, and these.
type Remains struct {
	Input
	// DPUs are those of the DPUCluster, including those that are being deleted.
	DPUs []dpf.DPU
	// Secrets are the bridge's, in its namespace and the DPUCluster's.
	Secrets []corev1.Secret
	// Denied are those of these two namespaces in which the operator may not read Secrets.
	Denied []string
	// Others are other objects of the bridge, in any namespace.
	Others []Object
	// Cached are ImageStreams of Unused.
	Cached []Object
}

// Ending is the next step of a deletion. A step begins once nothing of the one before is left.
type Ending struct {
	// Reason and Message of condition HostedClusterCleanup; empty if no step is left.
	Reason, Message string
	// Inject restores the kubeconfig that DPF has, if somebody changed or deleted it; nil if DPF does not need it, or it is not ours.
	Inject *Injection
	// Cluster and Pool to delete.
	Cluster *hyperv1.HostedCluster
	Pool    *hyperv1.NodePool
	// Unrefer removes our Secret's name from the DPUCluster.
	Unrefer bool
	// Secrets and Others to delete.
	Secrets []corev1.Secret
	Others  []Object
}

// End says what to do next. The order is the safe one (operator-rules.md#bridge-deletion): DPF removes the Node of a DPU through
// the hosted cluster, and through the kubeconfig in our Secret, so both outlive the DPUs.
func End(in Remains) Ending {
	cluster, pool := in.cluster(), in.pool()
	injected, own, inUse := in.split()
	templates, others := in.made()
	switch {
	case len(templates) > 0:
		return Ending{Others: templates, Reason: dpuv1.ReasonCleanupInProgress, Message: "withdrawing the templates from which DPF installs DPUs"}
	case cluster != nil && len(in.attached()) > 0 && !in.Forced():
		return Ending{Inject: in.injection(), Reason: dpuv1.ReasonCleanupDPUsAttached, Message: fmt.Sprintf(
			"DPUs %s of DPUCluster %s still exist, and DPF needs the hosted cluster to remove them: delete them, or finish at once with: kubectl -n %s annotate dpuhcpbridge %s %s=true%s",
			finding.Some(in.attached()), ClusterKey(in.Bridge), in.Bridge.Namespace, in.Bridge.Name, names.AnnotationForceDelete, in.strange())}
	case len(in.missed()) > 0 && !in.Forced():
		return Ending{Reason: dpuv1.ReasonCleanupFailed, Message: fmt.Sprintf(
			"%s; or keep the remaining objects and finish with: kubectl -n %s annotate dpuhcpbridge %s %s=true",
			Denied("", in.missed()[0]).Message, in.Bridge.Namespace, in.Bridge.Name, names.AnnotationForceDelete)}
	case len(inUse) > 0 && !in.Forced():
		return Ending{Reason: dpuv1.ReasonCleanupFailed, Message: fmt.Sprintf(
			"HostedCluster %s/%s uses Secret %s, which is deleted with this bridge, but has lost the bridge's labels: restore them with: %s; or keep only the HostedCluster and the Secret, without NodePool, address and ignition, and delete the rest with: kubectl -n %s annotate dpuhcpbridge %s %s=true",
			in.Bridge.Namespace, in.Bridge.Name, finding.Some(inUse), in.relabelling(), in.Bridge.Namespace, in.Bridge.Name, names.AnnotationForceDelete)}
	case cluster != nil || pool != nil:
		return Ending{Cluster: cluster, Pool: pool, Reason: dpuv1.ReasonCleanupInProgress, Message: fmt.Sprintf("waiting until HostedCluster and NodePool %s/%s are deleted", in.Bridge.Namespace, in.Bridge.Name)}
	case in.referred() || len(injected) > 0:
		return Ending{Unrefer: in.referred(), Secrets: injected, Reason: dpuv1.ReasonCleanupInProgress, Message: "removing the kubeconfig from the DPUCluster"}
	case len(own) > 0:
		return Ending{Secrets: own, Reason: dpuv1.ReasonCleanupInProgress, Message: "deleting the copies of Secrets"}
	}
	if len(others) > 0 {
		return Ending{Others: others, Reason: dpuv1.ReasonCleanupInProgress, Message: "deleting the ignition configuration, the address in MetalLB and the DPUServiceTemplates"}
	}
	if len(in.Cached) > 0 {
		return Ending{Others: in.Cached, Reason: dpuv1.ReasonCleanupInProgress, Message: "deleting the images in the cluster's own registry that no other bridge uses"}
	}
	return Ending{}
}

// made splits the other objects of the bridge into templates and the rest.
func (in Remains) made() (templates, others []Object) {
	for _, o := range in.Others {
		switch {
		case !in.Owns(o):
		case o.GetLabels()[names.LabelBridgeTemplate] != "":
			templates = append(templates, o)
		default:
			others = append(others, o)
		}
	}
	return templates, others
}

// injection restores the kubeconfig that DPF uses: a bridge that is being deleted does not inject a first one.
func (in Remains) injection() *Injection {
	var p Plan
	if in.referred() && len(in.binding()) == 0 {
		in.inject(&p)
	}
	return p.Inject
}

// split splits the Secrets into those that the DPUCluster may refer to, all others, and the names of those in use: a HostedCluster that was
// the bridge's and has lost its labels reads them, and without the key its etcd is lost.
func (in Remains) split() (injected, own []corev1.Secret, inUse []string) {
	key := InjectedKey(in.Bridge)
	for _, s := range in.Secrets {
		switch {
		case !in.Owns(&s):
		case in.cluster() == nil && in.reads(&s):
			inUse = append(inUse, s.Name)
		case s.Namespace == key.Namespace && s.Name == key.Name:
			injected = append(injected, s)
		default:
			own = append(own, s)
		}
	}
	return injected, own, inUse
}

// missed are the namespaces of Denied in which the bridge has created Secrets. Its status says so for the copies, or its hosted cluster,
// which needs them and survives a restore; the DPUCluster for the other. If that is gone, its namespace may be too.
func (in Remains) missed() (all []string) {
	for _, namespace := range in.Denied {
		if namespace == in.Bridge.Namespace && (in.Applied() || in.cluster() != nil) || in.referred() {
			all = append(all, namespace)
		}
	}
	return all
}

// referred says whether the DPUCluster refers to our Secret, whose name is unique to the bridge.
func (in Remains) referred() bool {
	return in.DPUCluster != nil && in.DPUCluster.Spec.Kubeconfig == InjectedKey(in.Bridge).Name
}

// attached are the names of the DPUCluster's DPUs; none if it never was the bridge's.
func (in Remains) attached() (all []string) {
	injected, _, _ := in.split()
	handed := slices.ContainsFunc(injected, func(s corev1.Secret) bool { return in.handed(&s) })
	if len(in.Refusals()) > 0 && !in.referred() && !in.wasGranted() && !handed {
		return nil
	}
	for i := range in.DPUs {
		if in.DPUs[i].Joins(ClusterKey(in.Bridge)) {
			all = append(all, in.DPUs[i].Namespace+"/"+in.DPUs[i].Name)
		}
	}
	return all
}

// strange says which of the attached DPUs the owners of DPUCluster and DPUDeployment did not make: who may create DPUs in any namespace can name
// the DPUCluster in one. They hold up the deletion too, because a DPU that has joined is removed through the hosted cluster, wherever it is.
func (in Remains) strange() string {
	cluster, deployment := ClusterKey(in.Bridge).Namespace, DeploymentKey(in.Bridge).Namespace
	all := slices.DeleteFunc(in.attached(), func(name string) bool {
		return strings.HasPrefix(name, cluster+"/") || deployment != "" && strings.HasPrefix(name, deployment+"/")
	})
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; ask who made %s, which are in a namespace of neither the DPUCluster nor the DPUDeployment", finding.Some(all))
}

// Forced says whether the user wants the deletion to continue whatever DPF still needs.
func (in Remains) Forced() bool { return in.Bridge.Annotations[names.AnnotationForceDelete] == "true" }
