package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// KeyLength is that of AES-256, by which HyperShift's aescbc encrypts etcd.
const KeyLength = 32

// secrets checks the user's Secrets and the key of etcd.
func (in Input) secrets() (all []finding.Finding) {
	const kind = dpuv1.ConditionSecretsValid
	if in.PullSecret.Denied || in.SSHKey.Denied || in.Key.Denied {
		return one(Denied(kind, in.Bridge.Namespace))
	}
	for _, s := range []struct {
		Secret
		field, name string
		problem     func(*corev1.Secret) string
	}{
		{in.PullSecret, "pullSecret", string(in.Bridge.Spec.PullSecret), PullSecretProblem},
		{in.SSHKey, "sshKey", string(in.Bridge.Spec.SSHKey), SSHKeyProblem},
	} {
		if s.Secret.Secret == nil {
			all = append(all, finding.Wait(kind, "SecretNotFound").At("spec."+s.field).
				Say("%s names Secret %s/%s, which does not exist; create it, e.g. from a file with oooi bridge create", s.field, in.Bridge.Namespace, s.name))
		} else if problem := s.problem(s.Secret.Secret); problem != "" {
			all = append(all, finding.Refuse(kind, "SecretInvalid").At("spec."+s.field).
				Say("%s names Secret %s/%s, which %s", s.field, in.Bridge.Namespace, s.name, problem))
		}
	}
	if in.Polled {
		all = append(all, finding.Warn(kind, "SecretsPolled").
			Say("changes of the bridge's Secrets may be seen a minute late: the bridges of namespace %s, or of all namespaces, refer to more Secrets than the operator watches; there is no other effect", in.Bridge.Namespace))
	}
	return append(all, in.key()...)
}

// key: what a key encrypts is lost with the key, so another is never generated for an existing hosted cluster.
func (in Input) key() []finding.Finding {
	name := in.Bridge.Namespace + "/" + names.BridgeKey(in.Bridge.Name)
	refuse := func(reason string) finding.Builder {
		return finding.Refuse(dpuv1.ConditionSecretsValid, reason)
	}
	switch {
	case in.Key.Secret == nil && in.cluster() != nil:
		return one(refuse("EncryptionKeyLost").Say("Secret %s is gone, and with it the key that the hosted cluster's etcd is encrypted with; it cannot be generated again: restore it from a backup before the control plane restarts", name))
	case in.Key.Secret == nil:
		return nil
	case !in.Owns(in.Key.Secret) && in.cluster() != nil:
		return one(refuse("EncryptionKeyLost").Say("Secret %s exists, but is not labelled as this bridge's; if it holds the key that the hosted cluster's etcd is encrypted with, label it: kubectl -n %s label secret %s --overwrite %s",
			name, in.Bridge.Namespace, names.BridgeKey(in.Bridge.Name), assigned(secretLabels(in.Bridge))))
	case !in.Owns(in.Key.Secret):
		return one(refuse(nameTaken).Say("Secret %s exists and does not belong to this bridge, which does not touch it: remove it, or give the bridge another name", name))
	case len(in.Key.Data[hyperv1.AESCBCKeySecretKey]) != KeyLength:
		return one(refuse("EncryptionKeyInvalid").Say("Secret %s does not hold %d bytes in its key %s any more; restore it from a backup", name, KeyLength, hyperv1.AESCBCKeySecretKey))
	}
	return nil
}

// assigned are labels as kubectl takes them.
func assigned(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, " ")
}

// nameTaken is the reason of a finding about an object that is not ours.
const nameTaken = "NameTaken"

// emptyKey is the Secret for the key, without the key, because a plan is not random.
func (in Input) emptyKey() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Bridge.Namespace, Name: names.BridgeKey(in.Bridge.Name), Labels: secretLabels(in.Bridge)},
		Type:       corev1.SecretTypeOpaque,
	}
}

func (in Input) pullSecretCopy() string {
	return names.BridgeCopy(in.Bridge.Name, "pull-secret", in.PullSecret.Data[PullSecretKey])
}

func (in Input) sshKeyCopy() string {
	return names.BridgeCopy(in.Bridge.Name, "ssh-key", in.SSHKey.Data[SSHKeyKey])
}

// Copied are the Secrets that the hosted cluster reads, if it is ours.
func (in Input) Copied() (all []types.NamespacedName) {
	if hc := in.cluster(); hc != nil {
		for _, copied := range []corev1.LocalObjectReference{hc.Spec.PullSecret, hc.Spec.SSHKey} {
			all = append(all, types.NamespacedName{Namespace: hc.Namespace, Name: copied.Name})
		}
	}
	return all
}

// reads says whether the HostedCluster of the bridge's name, whoever owns it, reads a Secret of the bridge's.
func (in Input) reads(s *corev1.Secret) bool {
	if s == nil || in.HostedCluster == nil || s.Namespace != in.HostedCluster.Namespace || !in.Owns(s) {
		return false
	}
	spec := in.HostedCluster.Spec
	read := []corev1.LocalObjectReference{spec.PullSecret, spec.SSHKey}
	if e := spec.SecretEncryption; e != nil && e.AESCBC != nil {
		read = append(read, e.AESCBC.ActiveKey)
	}
	return slices.Contains(read, corev1.LocalObjectReference{Name: s.Name})
}

// refersToKey says whether the HostedCluster of the bridge's name, whoever owns it, names the bridge's key. HyperShift's own command line
// uses the same name for its keys.
func (in Input) refersToKey() bool {
	e := in.HostedCluster.Spec.SecretEncryption
	return e != nil && e.AESCBC != nil && e.AESCBC.ActiveKey.Name == names.BridgeKey(in.Bridge.Name)
}

// relabelling is the command that makes a HostedCluster the bridge's again.
func (in Input) relabelling() string {
	return fmt.Sprintf("kubectl -n %s label --overwrite hostedcluster %s %s", in.Bridge.Namespace, in.Bridge.Name, assigned(labels(in.Bridge)))
}

// copies are those of the user's Secrets.
func (in Input) copies() []runtime.ApplyConfiguration {
	at := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: in.Bridge.Namespace, Name: name}
	}
	return []runtime.ApplyConfiguration{
		secret(in.Bridge, at(in.pullSecretCopy()), map[string][]byte{PullSecretKey: in.PullSecret.Data[PullSecretKey]}),
		secret(in.Bridge, at(in.sshKeyCopy()), map[string][]byte{SSHKeyKey: in.SSHKey.Data[SSHKeyKey]}),
	}
}

func secret(b *dpuv1.DPUHCPBridge, key types.NamespacedName, data map[string][]byte) *accore.SecretApplyConfiguration {
	return accore.Secret(key.Name, key.Namespace).WithLabels(secretLabels(b)).WithType(corev1.SecretTypeOpaque).WithData(data)
}
