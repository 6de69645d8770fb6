package apply

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/names"
)

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhatOthersAddIsOursToTakeAway(t *testing.T) {
	for name, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  bool
	}{
		"a port":                            {entry("kubectl-edit", "", `{"f:spec":{"f:ports":{"k:{\"port\":22,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`), true},
		"a field":                           {entry("kubectl-edit", "", `{"f:spec":{"f:externalIPs":{}}}`), true},
		"a field beside an annotation":      {entry("kubectl-edit", "", `{"f:metadata":{"f:annotations":{"f:a":{}}},"f:data":{"f:a":{}}}`), true},
		"an annotation":                     {entry("deployment-controller", "", `{"f:metadata":{"f:annotations":{".":{},"f:deployment.kubernetes.io/revision":{}}}}`), false},
		"an annotation of pods":             {entry("kubectl-rollout", "", `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`), false},
		"status":                            {entry("kube-controller-manager", "status", `{"f:status":{"f:replicas":{}}}`), false},
		"a number of replicas":              {entry("kubectl", "scale", `{"f:spec":{"f:replicas":{}}}`), false},
		"OpenShift's pull secrets":          {entry("openshift-controller-manager", "", `{"f:imagePullSecrets":{},"f:secrets":{"k:{\"name\":\"a\"}":{}}}`), false},
		"a webhook, within what we applied": {entry(names.ManagerFieldOwner, "", `{"f:spec":{"f:externalIPs":{}}}`), false},
		"not what the API server writes":    {entry("kubectl-edit", "", `[`), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(managedfields.Adds(c.entry)).To(Equal(c.want)) })
	}
}

func TestAnAdditionIsRememberedWhenItCouldNotBeTakenAway(t *testing.T) {
	g := NewWithT(t)
	want, err := managedfields.Intent(service())
	g.Expect(err).NotTo(HaveOccurred())
	was := live(t, whole, want)
	was.Namespace, was.Name = want.GetNamespace(), want.GetName()
	was.Labels = map[string]string{names.LabelOwnerUID: "owner"}
	was.ManagedFields = append(was.ManagedFields, entry("kubectl-edit", "", `{"f:metadata":{"f:annotations":{"f:a":{}}},"f:spec":{"f:externalIPs":{}}}`))
	for i := range was.ManagedFields {
		was.ManagedFields[i].APIVersion, was.ManagedFields[i].FieldsType = "v1", "FieldsV1"
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithReturnManagedFields().WithObjects(was).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errors.New("the line is cut")
		},
	}).Build()
	w := &Writer{Client: c, Live: c}
	g.Expect(w.one(t.Context(), Owner{UID: "owner"}, want).err).To(MatchError(ContainSubstring("the line is cut")))
	now := &corev1.Service{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(was), now)).To(Succeed())
	g.Expect(managedfields.Unchanged(now, want)).To(BeFalse())
}
