package refgrant

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

func TestAReferenceLeavesItsNamespaceOnlyWhereAdmitted(t *testing.T) {
	granting := func(namespaces string) map[string]string {
		return map[string]string{names.AnnotationAllowedNamespaces: namespaces}
	}
	for name, c := range map[string]struct {
		target      string
		annotations map[string]string
		allowed     []string
		want        bool
	}{
		"own namespace":                      {target: "tenant", want: true},
		"another namespace":                  {target: "clusters", want: false},
		"another that grants us":             {target: "clusters", annotations: granting("tenant"), want: true},
		"another that grants us among more":  {target: "clusters", annotations: granting("a, tenant ,b"), want: true},
		"another that grants a longer name":  {target: "clusters", annotations: granting("tenant-2"), want: false},
		"another that grants a prefix of us": {target: "clusters", annotations: granting("ten"), want: false},
		"another that grants nobody":         {target: "clusters", annotations: granting(""), want: false},
		"another that grants a star":         {target: "clusters", annotations: granting("*"), want: false},
		"another, after nothing":             {target: "clusters", annotations: granting(",tenant"), want: true},
		"an allowed namespace":               {target: "openshift-multus", allowed: []string{"default", "openshift-multus"}, want: true},
		"a namespace allowed to nobody":      {target: "openshift-multus", allowed: []string{"default"}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Reference{Field: "hostedClusterRef", From: "tenant", Kind: "hostedcluster", Namespace: c.target, Name: "c1", Annotations: c.annotations, AllowedNamespaces: c.allowed}
			NewWithT(t).Expect(r.Allowed()).To(Equal(c.want))
			NewWithT(t).Expect(Check(r) == nil).To(Equal(c.want))
		})
	}
}

func TestARefusalNamesFieldAndRemedyAndNotWhetherTheTargetExists(t *testing.T) {
	g := NewWithT(t)
	there := Reference{Field: "hostedClusterRef", From: "tenant", Kind: "hostedcluster", Namespace: "clusters", Name: "c1", Annotations: map[string]string{"a": "b"}}
	absent := there
	absent.Annotations = nil
	g.Expect(Check(there)).To(Equal(Check(absent)))
	g.Expect(Check(there)).To(Equal([]finding.Finding{{
		Condition: "Accepted", Reason: "RefNotPermitted", Severity: finding.Refused,
		Message: "hostedClusterRef names hostedcluster c1, which does not exist or does not allow namespace tenant; its owner can allow it with: " +
			"kubectl annotate --overwrite -n clusters hostedcluster c1 hostedcluster.densityops.com/allowed-namespaces=" +
			`"$(kubectl get -n clusters hostedcluster c1 -o jsonpath='{.metadata.annotations.hostedcluster\.densityops\.com/allowed-namespaces}'),tenant"`,
	}}))
}
