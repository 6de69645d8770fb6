// Package bridgecli implements `oooi bridge`: it makes a DPUHCPBridge and its Secrets from files, and prints a bridge's status.
package bridgecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bridgeac "github.com/cldmnky/oooi/api/provisioning/v1alpha1/applyconfiguration/provisioning/v1alpha1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Order is what a bridge is to be made from.
type Order struct {
	Namespace, Name string
	// DPUCluster and DPUDeployment are names, or namespace/name. A bridge may have no DPUDeployment.
	DPUCluster, DPUDeployment string
	Networks                  Networks
	// SSHKey and PullSecret are the files' contents.
	SSHKey, PullSecret []byte
	// Spec has everything else.
	Spec dpuv1.DPUHCPBridgeSpec
}

// Networks are those of a hosted cluster; empty ones have their defaults.
type Networks struct {
	Cluster, Service, Machine string
	// HostPrefix is the prefix length of each DPU's part of Cluster; 0 is HyperShift's default.
	HostPrefix int32
}

// Objects are the two Secrets and the bridge, in the order of applying. The contents are judged as the operator will judge them.
func (o Order) Objects() ([]runtime.ApplyConfiguration, error) {
	key := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{bridge.SSHKeyKey: o.SSHKey}}
	pull := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{bridge.PullSecretKey: o.PullSecret}}
	if err := errors.Join(problem("--ssh-key", bridge.SSHKeyProblem(key)), problem("--pull-secret", bridge.PullSecretProblem(pull))); err != nil {
		return nil, err
	}
	o.Spec.SSHKey, o.Spec.PullSecret = dpuv1.SecretName(o.Name+"-ssh-key"), dpuv1.SecretName(o.Name+"-pull-secret")
	o.Spec.DPUClusterRef.Namespace, o.Spec.DPUClusterRef.Name = reference(o.DPUCluster)
	if o.DPUDeployment != "" {
		o.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{}
		o.Spec.DPUDeploymentRef.Namespace, o.Spec.DPUDeploymentRef.Name = reference(o.DPUDeployment)
	}
	o.Spec.Networking = o.Networks.written()
	spec, err := written(o.Spec)
	if err != nil {
		return nil, err
	}
	return []runtime.ApplyConfiguration{
		o.secret(string(o.Spec.SSHKey), key), o.secret(string(o.Spec.PullSecret), pull),
		bridgeac.DPUHCPBridge(o.Name, o.Namespace).WithSpec(spec),
	}, nil
}

func reference(to string) (namespace, name v1alpha1.ObjectName) {
	if namespace, name, both := strings.Cut(to, "/"); both {
		return v1alpha1.ObjectName(namespace), v1alpha1.ObjectName(name)
	}
	return "", v1alpha1.ObjectName(to)
}

func (n Networks) written() *dpuv1.ClusterNetworking {
	if n == (Networks{}) {
		return nil
	}
	entry := func(cidr string) []dpuv1.NetworkEntry {
		if cidr == "" {
			return nil
		}
		return []dpuv1.NetworkEntry{{CIDR: v1alpha1.CIDR(cidr)}}
	}
	all := &dpuv1.ClusterNetworking{ServiceNetwork: entry(n.Service), MachineNetwork: entry(n.Machine)}
	if n.Cluster != "" || n.HostPrefix != 0 {
		all.ClusterNetwork = []dpuv1.ClusterNetworkEntry{{CIDR: v1alpha1.CIDR(n.Cluster), HostPrefix: n.HostPrefix}}
	}
	return all
}

func problem(flag, says string) error {
	if says == "" {
		return nil
	}
	return fmt.Errorf("the Secret made of %s %s", flag, says)
}

func (o Order) secret(name string, s *corev1.Secret) *accore.SecretApplyConfiguration {
	return accore.Secret(name, o.Namespace).WithType(s.Type).WithData(s.Data)
}

// written is an apply configuration with the fields that are set, so that it claims no others.
func written(spec dpuv1.DPUHCPBridgeSpec) (*bridgeac.DPUHCPBridgeSpecApplyConfiguration, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	fields := bridgeac.DPUHCPBridgeSpec()
	return fields, json.Unmarshal(text, fields)
}

// named has what every generated apply configuration offers.
type named interface {
	GetKind() *string
	GetNamespace() *string
	GetName() *string
}

// Apply sends the objects one after the other and reports each that was accepted. It first tries the bridge, which comes last, so that a
// refused one leaves no Secrets behind; judge is a client that drops warnings, since the trial warns of the missing Secrets.
func (o Order) Apply(ctx context.Context, to, judge client.Client, told func(string), options ...client.ApplyOption) error {
	trial, err := o.Objects() // a copy, because the client writes the API server's answer into it
	if err != nil {
		return err
	}
	if err := send(ctx, judge, trial[len(trial)-1], client.DryRunAll); err != nil {
		return err
	}
	objects, err := o.Objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := send(ctx, to, object, options...); err != nil {
			return err
		}
		told(title(object))
	}
	return nil
}

func send(ctx context.Context, to client.Client, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := to.Apply(ctx, o, append(options, client.FieldOwner(names.CLIFieldOwner))...); err != nil {
		return fmt.Errorf("applying %s: %w", title(o), err)
	}
	return nil
}

func title(o runtime.ApplyConfiguration) string {
	n := o.(named)
	return fmt.Sprintf("%s %s/%s", *n.GetKind(), *n.GetNamespace(), *n.GetName())
}
