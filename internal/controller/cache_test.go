package controller

import (
	"testing"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// Of what 500 Infras own, most is the same text.
func TestTheCacheKeepsOneCopyOfWhatObjectsShare(t *testing.T) {
	cached := func(owner string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Labels = map[string]string{names.LabelManagedBy: string([]byte(names.ManagedBy))}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"` + owner + `\"}":{}}}}`)}}
		kept, err := trim(d)
		if err != nil {
			t.Fatal(err)
		}
		return kept.(*appsv1.Deployment)
	}
	one, other := cached("0d4b6a3c-9d4f-4f5e-8a55-2f0f6c1f5a11"), cached("7c1e2f3a-1b2c-4d5e-8f90-a1b2c3d4e5f6")
	if one.ManagedFields[0].FieldsV1 != other.ManagedFields[0].FieldsV1 {
		t.Errorf("each owner has its own copy of\n%s\n%s", one.ManagedFields[0].FieldsV1.GetRawBytes(), other.ManagedFields[0].FieldsV1.GetRawBytes())
	}
	if a, b := one.Labels[names.LabelManagedBy], other.Labels[names.LabelManagedBy]; unsafe.StringData(a) != unsafe.StringData(b) {
		t.Errorf("two copies of the label %s", a)
	}
}
