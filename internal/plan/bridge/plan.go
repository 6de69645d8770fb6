// Package bridge plans one DPUHCPBridge, and says what is wrong with what its user wrote. It is pure: it reads no clock, no environment and
// no cluster, and does not change its input.
package bridge

import (
	"fmt"
	"regexp"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// planned is the plan of a bridge whose hosted cluster is its own, or yet to be made.
func (in Input) planned() Plan {
	p := Plan{End: in.endsWithCluster()}
	p.Find(in.binding()...)
	bound := !p.Blocked(dpuv1.ConditionDPUClusterBound)
	p.Find(in.tooLarge()...)
	p.Find(in.prerequisites()...)
	p.Find(in.secrets()...)
	p.Find(in.metallb()...)
	p.Image = in.image(&p)
	services := in.services(&p)
	p.Find(in.tagged()...)
	p.Find(in.refusedPool()...)
	if bound {
		in.inject(&p)
		in.approve(&p)
	}
	in.templates(&p, bound)
	in.serviceTemplates(&p, bound)
	if p.Frozen = p.frozen(); p.Frozen {
		return p
	}
	if in.Key.Secret == nil {
		p.Key = in.emptyKey()
	}
	p.Recreates = in.HostedCluster == nil && Reported(in.Bridge)
	p.Copies = []string{in.pullSecretCopy(), in.sshKeyCopy()}
	p.Want(in.copies()...)
	if in.trusted() != nil {
		p.Want(in.trustBundle())
	}
	p.Want(in.ignition(p.Image), in.hostedCluster(services), in.nodePool())
	p.Want(in.pools()...)
	p.Former = in.former()
	return p
}

// endsWithCluster says whether the bridge is deleted because its DPUCluster is. The bridge must have said that it was bound, because a
// restore may bring the DPUCluster back later. The deletion tells the author that the DPUCluster is gone, so for another namespace it needs
// a reference grant, now or before.
func (in Input) endsWithCluster() bool {
	if !in.Served.DPF || in.Bridge.Spec.DPUClusterDeletionPolicy != dpuv1.DeleteHostedCluster || !in.said(dpuv1.ConditionDPUClusterBound) {
		return false
	}
	if in.DPUCluster == nil {
		return in.wasGranted()
	}
	return in.DPUCluster.DeletionTimestamp != nil && (in.wasGranted() || len(in.Refusals()) == 0)
}

// tooLarge reports those of a bridge and its objects that are kept in part.
func (in Input) tooLarge() []finding.Finding {
	all := kept.Judge(dpuv1.ConditionReady, in.Bridge, in.HostedCluster, in.NodePool, in.Pool)
	if len(in.Refusals()) == 0 {
		all = append(all, kept.Judge(dpuv1.ConditionDPUClusterBound, in.DPUCluster)...)
	}
	return all
}

// prerequisites are those of the hosted cluster.
func (in Input) prerequisites() (all []finding.Finding) {
	waiting := func(reason string) finding.Builder { return finding.Wait(dpuv1.ConditionReady, reason) }
	if !in.Served.HyperShift {
		return one(waiting("HyperShiftNotInstalled").Say("the cluster does not serve HostedClusters and NodePools (%s): install HyperShift, on OpenShift with the multicluster engine operator (MCE); the bridge notices it", hyperv1.GroupVersion))
	}
	if hc := in.HostedCluster; hc != nil && in.cluster() == nil {
		taken := finding.Refuse(dpuv1.ConditionReady, "HostedClusterTaken").At("metadata.name")
		if in.reads(in.Key.Secret) || Reported(in.Bridge) && in.refersToKey() { // admission does not read the Secret
			all = append(all, taken.Say("HostedCluster %s/%s uses the encryption key of this bridge, but has lost the bridge's labels: restore them with: %s", hc.Namespace, hc.Name, in.relabelling()))
		} else {
			all = append(all, taken.Say("HostedCluster %s/%s exists and does not belong to this bridge, which does not touch it: give the bridge another name, or remove the HostedCluster%s", hc.Namespace, hc.Name, in.handingOver()))
		}
	}
	if hc := in.cluster(); hc != nil && hc.DeletionTimestamp != nil {
		all = append(all, waiting("HostedClusterTerminating").
			Say("HostedCluster %s/%s is being deleted, but not by this bridge, which recreates it afterwards; to remove it for good, delete the bridge", hc.Namespace, hc.Name))
	}
	if np := in.NodePool; np != nil && in.pool() == nil {
		all = append(all, finding.Refuse(dpuv1.ConditionReady, "NodePoolTaken").At("metadata.name").
			Say("NodePool %s/%s exists and does not belong to this bridge, which does not touch it: give the bridge another name, or remove the NodePool", np.Namespace, np.Name))
	}
	if name := ControlPlane(in.Bridge); len(name) > validation.DNS1123LabelMaxLength {
		all = append(all, finding.Refuse(dpuv1.ConditionReady, "NameTooLong").At("metadata.name").
			Say("the control plane would be in namespace %s, which has %d characters, but may have at most %d: give the bridge or its namespace a shorter name", name, len(name), validation.DNS1123LabelMaxLength))
	}
	return slices.Concat(all, in.occupied(), in.storage(), in.overlaps(), in.differs(), in.untrusted())
}

// occupied says that the control-plane namespace is another's. It does so in one sentence for all cases, because by different ones a
// bridge's author would learn which namespaces and HostedClusters exist.
func (in Input) occupied() []finding.Finding {
	if !in.anotherHasNamespace() {
		return nil
	}
	name, from := ControlPlane(in.Bridge), in.Bridge.Namespace
	return one(finding.Refuse(dpuv1.ConditionReady, "NamespaceTaken").At("metadata.name").
		Say("the control plane would be in namespace %s, HyperShift's name for that of %s/%s, but that namespace may belong to somebody else: give the bridge another name; if the namespace was created for this bridge, its owner can grant it with: kubectl annotate --overwrite namespace %s %s=%s",
			name, from, in.Bridge.Name, name, names.AnnotationAllowedNamespaces, from))
}

// anotherHasNamespace says whether somebody else has the control-plane namespace. HyperShift joins namespace and name by a dash, so that
// those of two HostedClusters can be the same, and uses any namespace with that name, whoever created it. The first has it, by the API
// server's creation times: labels do not suffice, because a bridge's author can write ours.
func (in Input) anotherHasNamespace() bool {
	switch ns, hc := in.Namespace, in.cluster(); {
	case slices.ContainsFunc(in.Neighbours, func(other *hyperv1.HostedCluster) bool { return hc == nil || input.Older(other, hc) }):
		return true
	case ns == nil || ns.Labels[endpoint.ControlPlaneLabel] == "true" && in.works(): // our own hosted cluster's, maybe an earlier one's
		return false
	case hc != nil && !ns.CreationTimestamp.Before(&hc.CreationTimestamp): // created for it
		return false
	}
	return !(refgrant.Reference{From: in.Bridge.Namespace, Namespace: ControlPlane(in.Bridge), Annotations: in.Namespace.Annotations}).Allowed()
}

// storage checks the StorageClass of etcd, which matters only before its claim exists.
func (in Input) storage() []finding.Finding {
	if in.cluster() != nil {
		return nil
	}
	named := string(in.Bridge.Spec.EtcdStorageClass)
	for _, class := range in.StorageClasses {
		if class.Name == named || named == "" && class.Annotations[defaultClass] == "true" {
			return nil
		}
	}
	waiting := finding.Wait(dpuv1.ConditionReady, "StorageClassNotFound").At("spec.etcdStorageClass")
	if named != "" {
		return one(waiting.Say("StorageClass %s for etcd does not exist: install its storage (e.g. OpenShift Data Foundation), or recreate the bridge with another etcdStorageClass", named))
	}
	return one(waiting.Say("no StorageClass is the default (annotation %s), and etcd needs one: install storage (e.g. OpenShift Data Foundation), mark a class as the default, or recreate the bridge with etcdStorageClass", defaultClass))
}

// defaultClass marks the StorageClass of claims that name none (Kubernetes documentation, Storage Classes).
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// approve plans the approval of certificates, as long as our hosted cluster for this DPUCluster exists.
func (in Input) approve(p *Plan) {
	hc, key := in.cluster(), in.KubeconfigKey()
	switch {
	case hc != nil && hc.DeletionTimestamp != nil:
		p.Find(finding.Wait(dpuv1.ConditionCSRAutoApprovalActive, "HostedClusterTerminating").Say("nothing is approved in a hosted cluster that is being deleted"))
	case hc != nil && in.anotherHasNamespace():
		p.Find(finding.Refuse(dpuv1.ConditionCSRAutoApprovalActive, "NamespaceTaken").Say("nothing is approved through namespace %s, which belongs to somebody else", ControlPlane(in.Bridge)))
	case key.Name != "":
		p.Approve = &Approval{
			Secret: key, Cluster: ClusterKey(in.Bridge), API: APIAddresses(in.Bridge, hc), ServiceNetworks: ServiceNetworks(hc),
			Privileged:    in.privileged(p),
			NoRebootstrap: in.Bridge.Spec.Rebootstrap == dpuv1.NeverRebootstrap,
			Server:        fmt.Sprintf("https://kube-apiserver.%s.svc:6443", endpoint.ControlPlaneNamespace(hc)),
		}
	}
}

// inject plans the injection of the harmless parts of the hosted cluster's kubeconfig.
func (in Input) inject(p *Plan) {
	const kind = dpuv1.ConditionKubeconfigInjected
	source, key := in.KubeconfigKey(), InjectedKey(in.Bridge)
	switch {
	case source.Name == "":
		p.Find(finding.Wait(kind, "WaitingForKubeconfig").Say("the HostedCluster names no kubeconfig yet (status.kubeconfig)"))
	case in.Kubeconfig.Secret.Denied:
		p.Find(Denied(kind, source.Namespace))
	case in.Injected.Denied:
		p.Find(Denied(kind, key.Namespace))
	case in.Kubeconfig.Secret.Secret == nil:
		p.Find(finding.Wait(kind, "WaitingForKubeconfig").Say("Secret %s with the hosted cluster's kubeconfig does not exist", source))
	case in.Kubeconfig.Refused != "":
		p.Find(finding.Refuse(kind, "KubeconfigRefused").Say("the kubeconfig in Secret %s is not used (%s): %s", source, in.Kubeconfig.Refused, in.Kubeconfig.Because))
	case in.Injected.Secret != nil && !in.Owns(in.Injected.Secret):
		p.Find(finding.Refuse(kind, nameTaken).Say("Secret %s exists and does not belong to this bridge, which does not touch it: remove it", key))
	default:
		p.Inject = &Injection{
			Secret:  in.handedOver(map[string][]byte{dpf.KubeconfigKey: in.Kubeconfig.Content}),
			Refer:   in.DPUCluster.Spec.Kubeconfig == "",
			Created: in.DPUCluster.Spec.Type != dpf.TypeStatic && !meta.IsStatusConditionTrue(in.DPUCluster.Status.Conditions, dpf.ConditionCreated),
		}
	}
	if p.Inject == nil && in.unmarked() {
		p.Inject = &Injection{Secret: in.handedOver(nil)}
	}
}

// handedOver is the Secret that the DPUCluster refers to.
func (in Input) handedOver(data map[string][]byte) runtime.ApplyConfiguration {
	return secret(in.Bridge, InjectedKey(in.Bridge), data).WithAnnotations(map[string]string{names.AnnotationDPUCluster: ClusterKey(in.Bridge).Name})
}

// unmarked says whether nothing shows yet that the bridge had the DPUCluster of another namespace, in the sense of wasGranted. Its Secret is
// then created without a kubeconfig, because a DPUCluster may be deleted before there is one, and with it the bridge, if that is its policy.
func (in Input) unmarked() bool {
	return ClusterKey(in.Bridge).Namespace != in.Bridge.Namespace && in.DPUCluster.Spec.Kubeconfig == "" && in.Injected.Secret == nil && !in.Injected.Denied
}

// said says whether a condition is True in the bridge's own status.
func (in Input) said(condition string) bool {
	return meta.IsStatusConditionTrue(in.Bridge.Status.Conditions, condition)
}

// Applied says whether, by the bridge's status, objects were created for it.
func (in Input) Applied() bool {
	c := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionIgnitionConfigured)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// notGranted is how an API server says that a Role is missing (apiserver, pkg/endpoints/handlers/responsewriters/errors.go,
// forbiddenMessage). Admission's messages differ.
var notGranted = regexp.MustCompile(`cannot \w+ resource "[^"]*" in API group "[^"]*" in the namespace "([-a-z0-9]+)"`)

// Ungranted finds the namespaces in an API server's message about missing permissions, and says for each how to grant them.
func (s Settings) Ungranted(condition, said string) (all []finding.Finding) {
	named := map[string]bool{}
	for _, found := range notGranted.FindAllStringSubmatch(said, -1) {
		namespace := found[1]
		if named[namespace] {
			continue
		}
		named[namespace] = true
		granting := finding.Granting(namespace, "dpu-bridge", "bridge.namespaces")
		if namespace == s.MetalLBNamespace {
			granting = fmt.Sprintf("kubectl apply -n %s -k config/components/metallb, or, where Helm installed it, name the address's network in the chart's flags.bridge-virtual-ips", namespace)
		}
		all = append(all, finding.Wait(condition, input.GuestNotGranted).Say("the operator may not write what bridges need in namespace %s: %s", namespace, granting))
	}
	return all
}
