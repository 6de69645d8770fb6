package bundle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

// validators are all that ask neither a container engine nor a catalog, and what they are told.
var validators = append(interfaces.Validators{
	validation.OperatorHubV2Validator, validation.StandardCategoriesValidator, validation.StandardCapabilitiesValidator,
	validation.ObjectValidator, validation.OperatorGroupValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
}, validation.DefaultBundleValidators...)

// excused are warnings that are wrong or do not matter, and why.
var excused = map[string]string{
	"is using APIs which were deprecated":            "it compares resources of rules, which have no version: ours are served as v1",
	"provided API should have an example annotation": "of the kinds that the operator makes, the console hides (internal-objects)",
}

// Validate asks operator-framework's validators about a bundle's directory; their warnings count as errors, but for those excused.
func Validate(dir string) error {
	b, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return fmt.Errorf("reading the bundle in %s: %w", dir, err)
	}
	objects := b.ObjectsToValidate()
	for i := range b.V1CRDs {
		objects = append(objects, b.V1CRDs[i])
	}
	var all []error
	for _, result := range validators.Validate(append(objects, map[string]string{"k8s-version": "1.30"})...) {
		for _, e := range result.Errors {
			all = append(all, e)
		}
		for _, w := range result.Warnings {
			if !isExcused(w.Error()) {
				all = append(all, w)
			}
		}
	}
	return errors.Join(all...)
}

func isExcused(warning string) bool {
	for says := range excused {
		if strings.Contains(warning, says) {
			return true
		}
	}
	return false
}
