package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/names"
)

// Owner is whose objects are written.
type Owner struct {
	UID types.UID
	// Living are the UIDs of all owners of this kind.
	Living map[types.UID]bool
	// Selector finds by labels what names this owner.
	Selector labels.Selector
	// Kinds that it owns.
	Kinds []schema.GroupVersionKind
	// Namespace that holds them; empty is all.
	Namespace string
}

// owns says whether an object is this owner's: by ownerReference, else by the label that stands for one. After a restore
// every UID is new: what names us and belongs to nobody that lives is ours too, and is labelled anew (spec/api.md, DHCPLease).
func (o Owner) owns(object client.Object) bool {
	if ref := metav1.GetControllerOf(object); ref != nil {
		return ref.UID == o.UID
	}
	uid := types.UID(object.GetLabels()[names.LabelOwnerUID])
	if uid == o.UID {
		return true
	}
	return uid != "" && !o.Living[uid] && o.Selector.Matches(labels.Set(object.GetLabels()))
}
