package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// As converts a typed spec to an apply configuration. All our optional fields have omitempty, so unset ones are not owned (managed fields).
func As[T any](spec any) *T {
	text, err := json.Marshal(spec)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(fmt.Sprintf("%T does not become %T: %v", spec, out, err)) // both are generated from one type
	}
	return out
}

// Encoded is a value as JSON.
func Encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // an apply configuration can always be encoded
	}
	return text
}

// Digest identifies a value by its JSON.
func Digest(value any) string {
	sum := sha256.Sum256(Encoded(value))
	return hex.EncodeToString(sum[:8])
}

// Reading is a rule that lets a daemon read and watch resources.
func Reading(group string, resources ...string) *acrbac.PolicyRuleApplyConfiguration {
	return acrbac.PolicyRule().WithAPIGroups(group).WithResources(resources...).WithVerbs("get", "list", "watch")
}

// TellingStages are the rules that let a daemon write what it saw of workers into the status of their leases.
func TellingStages() []*acrbac.PolicyRuleApplyConfiguration {
	const group = "hostedcluster.densityops.com"
	return []*acrbac.PolicyRuleApplyConfiguration{
		Reading(group, "dhcpleases"), acrbac.PolicyRule().WithAPIGroups(group).WithResources("dhcpleases/status").WithVerbs("patch"),
	}
}

// TellingEvents is a rule that lets a daemon create Events.
func TellingEvents() *acrbac.PolicyRuleApplyConfiguration {
	return acrbac.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create")
}

// ServicePort is a port of a Service whose pods listen on the same number.
func ServicePort(name string, protocol corev1.Protocol, number int32) *accore.ServicePortApplyConfiguration {
	return accore.ServicePort().WithName(name).WithProtocol(protocol).WithPort(number).WithTargetPort(intstr.FromInt32(number))
}

// Labels of all objects of an Infra. By them the manager finds objects that cannot have an ownerReference, and the DHCP daemon knows whose
// leases it writes.
func Labels(infra *v1alpha1.Infra) map[string]string {
	return map[string]string{
		names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace, names.LabelOwnerUID: string(infra.UID), names.LabelManagedBy: names.ManagedBy,
	}
}

// IP is an address in our API's form; empty if it is invalid.
func IP(a netip.Addr) v1alpha1.IPAddress { return v1alpha1.IPAddress(text(a)) }

// IPv4 is the same for IPv4 fields.
func IPv4(a netip.Addr) v1alpha1.IPv4Address { return v1alpha1.IPv4Address(text(a)) }

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// HostRoute is an address as a /32 or, in IPv6, a /128.
func HostRoute(a netip.Addr) string { return a.String() + "/" + strconv.Itoa(a.BitLen()) }
