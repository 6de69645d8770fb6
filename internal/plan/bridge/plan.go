// Package bridge says what one DPUHCPBridge becomes, and what is wrong with what its user wrote. It is pure: it reads no clock, no
// environment and no cluster, and does not change its input.
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

// Of says what one bridge becomes. The input is complete: what is nil in it does not exist. A Frozen plan has no objects; its findings
// say why.
func Of(in Input) Plan {
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
	if p.Frozen = p.frozen(); p.Frozen {
		return p
	}
	if in.Key.Secret == nil {
		p.Key = in.emptyKey()
	}
	p.Recreates = in.HostedCluster == nil && Reported(in.Bridge)
	p.Copies = []string{in.pullSecretCopy(), in.sshKeyCopy()}
	p.Want(in.copies()...)
	p.Want(in.ignition(p.Image), in.hostedCluster(services), in.nodePool())
	p.Want(in.pools()...)
	return p
}

// frozen: one finding that something is missing or wrong holds the hosted cluster back as a whole, for half of one is none.
// Injection and approval come after it.
func (p *Plan) frozen() bool {
	return p.Blocked(dpuv1.ConditionDPUClusterBound, dpuv1.ConditionReady, dpuv1.ConditionSecretsValid,
		dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionMetalLBConfigured)
}

// endsWithCluster only for a bridge that said itself that it was bound: after a restore the DPUCluster may come later than the bridge. A
// bridge that goes tells its author that a DPUCluster has gone: of another namespace's, only who may hear of it.
func (in Input) endsWithCluster() bool {
	if !in.Served.DPF || in.Bridge.Spec.DPUClusterDeletionPolicy != dpuv1.DeleteHostedCluster || !in.said(dpuv1.ConditionDPUClusterBound) {
		return false
	}
	if in.DPUCluster == nil {
		return in.wasGranted()
	}
	return in.DPUCluster.DeletionTimestamp != nil && (in.wasGranted() || len(in.Refusals()) == 0)
}

// tooLarge is what is kept in part of a bridge and its objects.
func (in Input) tooLarge() []finding.Finding {
	all := kept.Judge(dpuv1.ConditionReady, in.Bridge, in.HostedCluster, in.NodePool, in.Pool)
	if len(in.Refusals()) == 0 {
		all = append(all, kept.Judge(dpuv1.ConditionDPUClusterBound, in.DPUCluster)...)
	}
	return all
}

// prerequisites of the hosted cluster itself.
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
			all = append(all, taken.Say("HostedCluster %s/%s exists and does not belong to this bridge, which does not touch it: give the bridge another name, or remove the HostedCluster", hc.Namespace, hc.Name))
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
	return append(append(all, in.occupied()...), in.storage()...)
}

// occupied says that the control plane's namespace is another's. It says so in one sentence, whatever is there and whosever: by two, who
// writes a bridge would learn which namespaces and HostedClusters there are.
func (in Input) occupied() []finding.Finding {
	if !in.anotherHasNamespace() {
		return nil
	}
	name, from := ControlPlane(in.Bridge), in.Bridge.Namespace
	return one(finding.Refuse(dpuv1.ConditionReady, "NamespaceTaken").At("metadata.name").
		Say("the control plane would be in namespace %s, HyperShift's name for that of %s/%s, but that namespace may belong to somebody else: give the bridge another name; if the namespace was created for this bridge, its owner can grant it with: kubectl annotate --overwrite namespace %s %s=%s",
			name, from, in.Bridge.Name, name, names.AnnotationAllowedNamespaces, from))
}

// anotherHasNamespace of the control plane. HyperShift joins namespace and name by a dash, so that two HostedClusters can mean one, and puts
// a control plane into any namespace of that name, whoever made it. Once ours is there, those that come later wait. Who comes first, the
// API server's clock says: labels of ours the author of a bridge can write himself.
func (in Input) anotherHasNamespace() bool {
	switch ns, hc := in.Namespace, in.cluster(); {
	case slices.ContainsFunc(in.Neighbours, func(other *hyperv1.HostedCluster) bool { return hc == nil || input.Older(other, hc) }):
		return true
	case ns == nil || ns.Labels[endpoint.ControlPlaneLabel] == "true" && in.works(): // of our own hosted cluster, maybe an earlier one
		return false
	case hc != nil && !ns.CreationTimestamp.Before(&hc.CreationTimestamp): // made for it
		return false
	}
	return !(refgrant.Reference{From: in.Bridge.Namespace, Namespace: ControlPlane(in.Bridge), Annotations: in.Namespace.Annotations}).Allowed()
}

// storage for etcd, which is asked for only before there is a claim.
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

// defaultClass marks the StorageClass of claims that name none (storage-class docs).
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// approve certificates as long as there is a hosted cluster of ours for this DPUCluster.
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
			NoRebootstrap: in.Bridge.Spec.Rebootstrap == dpuv1.NeverRebootstrap,
			Server:        fmt.Sprintf("https://kube-apiserver.%s.svc:6443", endpoint.ControlPlaneNamespace(hc)),
		}
	}
}

// inject what the hosted cluster's kubeconfig has that is harmless.
func (in Input) inject(p *Plan) {
	const kind = dpuv1.ConditionKubeconfigInjected
	source, key := in.KubeconfigKey(), InjectedKey(in.Bridge)
	switch {
	case source.Name == "":
		p.Find(finding.Wait(kind, "WaitingForKubeconfig").Say("the HostedCluster names no kubeconfig yet (status.kubeconfig)"))
	case in.Kubeconfig.Secret.Denied:
		p.Find(denied(kind, source.Namespace))
	case in.Injected.Denied:
		p.Find(denied(kind, key.Namespace))
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

// handedOver is the Secret that the DPUCluster is to refer to.
func (in Input) handedOver(data map[string][]byte) runtime.ApplyConfiguration {
	return secret(in.Bridge, InjectedKey(in.Bridge), data).WithAnnotations(map[string]string{names.AnnotationDPUCluster: ClusterKey(in.Bridge).Name})
}

// unmarked says whether nothing shows yet that the bridge had the DPUCluster of another namespace, as wasGranted has it. Its Secret is made
// without a kubeconfig then: a DPUCluster may go before there is one, and takes the bridge with it if that is its policy.
func (in Input) unmarked() bool {
	return ClusterKey(in.Bridge).Namespace != in.Bridge.Namespace && in.DPUCluster.Spec.Kubeconfig == "" && in.Injected.Secret == nil && !in.Injected.Denied
}

// said tells whether the bridge's own status says that a condition is True.
func (in Input) said(condition string) bool {
	return meta.IsStatusConditionTrue(in.Bridge.Status.Conditions, condition)
}

// Applied tells whether the bridge's status says that objects were made for it.
func (in Input) Applied() bool {
	c := meta.FindStatusCondition(in.Bridge.Status.Conditions, dpuv1.ConditionIgnitionConfigured)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// notGranted is how an API server says that a Role is missing (apiserver, pkg/endpoints/handlers/responsewriters/errors.go,
// forbiddenMessage). What admission forbids reads otherwise.
var notGranted = regexp.MustCompile(`cannot \w+ resource "[^"]*" in API group "[^"]*" in the namespace "([-a-z0-9]+)"`)

// Ungranted finds the namespaces in an API server's message that we may not do something, and says for each how to grant it.
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
