package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// Owner is the object for which others are written.
type Owner struct {
	UID types.UID
	// Exists says whether a UID is that of an existing owner of this kind.
	Exists func(types.UID) bool
	// Names is this owner's value in NamedBy.
	Names string
	// Namespace of its own, and the Kinds that it owns there.
	Namespace string
	Kinds     []schema.GroupVersionKind
	// Anywhere are kinds that it owns in any namespace.
	Anywhere []schema.GroupVersionKind
	// Read are the resourceVersions of objects that the plan was made from. One that has changed since is left to the next plan.
	Read map[finding.Object]string
}

// owns says whether an object is this owner's: by ownerReference, or else by the label that stands for one. An object that names us and
// whose owner no longer exists is ours too. After a restore every UID is new (operator-rules.md#owners), and after a component is switched
// off and on again, the garbage collector may take the first child's objects half a minute later. It deletes them only as it read them, and
// so leaves one that has changed hands (kubernetes, pkg/controller/garbagecollector/operations.go, deleteObject).
func (o Owner) owns(object client.Object) bool {
	uid := types.UID(object.GetLabels()[names.LabelOwnerUID])
	if ref := metav1.GetControllerOf(object); ref != nil {
		if ref.UID != o.UID && !ofOurs(ref) {
			return false
		}
		uid = ref.UID
	}
	if uid == o.UID {
		return true
	}
	return uid != "" && slices.Contains(NamedBy(object), o.Names) && !o.Exists(uid)
}

// inherits says whether an object's ownerReference names another UID: an earlier owner's, if the object is ours.
func (o Owner) inherits(object client.Object) bool {
	ref := metav1.GetControllerOf(object)
	return ref != nil && ref.UID != o.UID
}

// ofOurs says whether a reference is to a kind of ours: a workload's pods have the labels of its child too.
func ofOurs(ref *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == v1alpha1.GroupVersion.Group
}

// IndexNames is the cache's index by NamedBy. Every kind that can be owned needs it.
const IndexNames = "names"

// NamedBy says which owner an object's labels name: a child, or else a bridge, or else an Infra, or else the HostedCluster of an Infra.
// Nobody if the object is not ours.
func NamedBy(object client.Object) []string {
	l := object.GetLabels()
	switch {
	case l[names.LabelManagedBy] != names.ManagedBy:
		return nil
	case l[names.LabelInstance] != "":
		return []string{NameOf(l[names.LabelApp], object.GetNamespace(), l[names.LabelInstance])}
	case l[names.LabelPulls] != "":
		return []string{NameOf(l[names.LabelApp], object.GetNamespace(), l[names.LabelPulls])}
	case l[names.LabelBridge] != "" && l[names.LabelBridgeTemplate] != "":
		return []string{NameOf("template", l[names.LabelBridgeNamespace], l[names.LabelBridge])}
	case l[names.LabelBridge] != "":
		return []string{NameOf("bridge", l[names.LabelBridgeNamespace], l[names.LabelBridge])}
	case l[names.LabelInfra] != "":
		return []string{NameOf("infra", l[names.LabelInfraNamespace], l[names.LabelInfra])}
	case l[names.LabelHostedCluster] != "":
		return []string{NameOf("hostedcluster", object.GetNamespace(), l[names.LabelHostedCluster])}
	}
	return nil
}

// NameOf is an owner's value in NamedBy; app is bridge, template, infra, hostedcluster, or a child's app.
func NameOf(app, namespace, name string) string { return app + "/" + namespace + "/" + name }
