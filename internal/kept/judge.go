package kept

import (
	"reflect"

	"github.com/cldmnky/oooi/internal/finding"
)

// Judge returns a finding for each object that is kept only in part, as nothing can be planned from it. Nil objects are skipped.
func Judge(condition string, objects ...Object) (all []finding.Finding) {
	for _, object := range objects {
		if reflect.ValueOf(object).IsNil() {
			continue
		}
		if excess, is := InPart(object); is {
			of := finding.Object{Kind: reflect.TypeOf(object).Elem().Name(), Namespace: object.GetNamespace(), Name: object.GetName()}
			all = append(all, finding.Refuse(condition, "ObjectTooLarge").In(of).At(excess.Part).
				Say("%s is too large to be read: %s; take away labels, or entries of its lists, that nobody needs; until then what serves stays as it is", of, excess))
		}
	}
	return all
}
