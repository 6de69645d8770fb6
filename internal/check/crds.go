package check

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/config"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
)

const upgradeCRDs = "install the CRDs of the operator's version: helm upgrade, or make install, from its tree"

// Own are this binary's CRDs, by name.
func Own() map[string]apiextensionsv1.CustomResourceDefinition {
	all := maps.Clone(embedded())
	for name, crd := range all {
		all[name] = *crd.DeepCopy()
	}
	return all
}

// embedded takes a tenth of a second.
var embedded = sync.OnceValue(func() map[string]apiextensionsv1.CustomResourceDefinition {
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	files, err := fs.Glob(config.Files, "crd/bases/*.yaml")
	if err != nil {
		panic(err) // the pattern is right
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		text, err := config.Files.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &crd)
		}
		if err != nil {
			panic(path.Base(file) + ": " + err.Error()) // it is embedded
		}
		all[crd.Name] = crd
	}
	return all
})

// crds compares the cluster's CRDs of the groups that the operator serves with this binary's.
func crds(f Facts) (all []step.Step) {
	if f.CRDs.Unread != "" {
		return one(unread("the operator's CRDs", f.CRDs.Unread))
	}
	own, good, missing := Own(), 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		got, there := f.CRDs.Is[name]
		switch want := own[name]; {
		case !f.serves(want.Spec.Group):
		case !there:
			missing = append(missing, name)
		default:
			s := compare(want, got, f.skewed())
			if s.Outcome == step.OK {
				good++
				continue
			}
			s.Of = "CustomResourceDefinition " + name
			all = append(all, s)
		}
	}
	if len(missing) > 0 && f.Deployment.Unread != "" {
		all = append(all, skip("whether the operator needs these CRDs, which are missing, is not known, because its Deployment is not read: %s", strings.Join(missing, ", ")))
	} else if len(missing) > 0 {
		all = append(all, fail("install them: helm install, or make install, from the operator's tree", "CRDs are missing: %s", strings.Join(missing, ", ")))
	}
	if len(all) == 0 {
		return one(ok("%d CRDs of the operator have the schema that this oooi knows", good))
	}
	return all
}

// lacksCRD says whether a CRD is known not to be there.
func (f Facts) lacksCRD(name string) bool {
	_, there := f.CRDs.Is[name]
	return f.CRDs.Unread == "" && !there
}

// serves says whether the operator has controllers for a group; without an operator that is read, both count.
func (f Facts) serves(group string) bool {
	if f.Deployment.Is == nil || f.Deployment.Unread != "" {
		return true
	}
	return group == names.BridgeGroup && f.Manager.Bridges || group != names.BridgeGroup && f.Manager.VLAN
}

// compare says how a CRD of the cluster differs from this binary's, which may be skewed against the operator.
func compare(want, got apiextensionsv1.CustomResourceDefinition, skewed bool) step.Step {
	for _, c := range got.Status.Conditions {
		if (c.Type == apiextensionsv1.Established || c.Type == apiextensionsv1.NamesAccepted) && c.Status != apiextensionsv1.ConditionTrue {
			return fail("kubectl describe crd "+got.Name, "CRD %s is not served: %s: %s", got.Name, c.Reason, c.Message)
		}
	}
	for _, w := range want.Spec.Versions {
		i := slices.IndexFunc(got.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == w.Name && v.Served })
		if i < 0 {
			return fail(upgradeCRDs, "CRD %s does not serve version %s", got.Name, w.Name)
		}
		lacks, more, other := differences(generic(w), generic(got.Spec.Versions[i]))
		switch {
		case len(lacks) > 0 && skewed: // they may be what the operator knows
			return warn(theSame, "CRD %s is older than this oooi: it lacks %s", got.Name, first(lacks))
		case len(lacks) > 0:
			return fail(upgradeCRDs, "CRD %s is older than this oooi: it lacks %s", got.Name, first(lacks))
		case len(more) > 0:
			return warn(theSame, "CRD %s is newer than this oooi: it has %s", got.Name, first(more))
		case len(other) > 0:
			return warn(upgradeCRDs, "CRD %s is of another version than this oooi: it has other rules for %s", got.Name, first(other))
		}
	}
	return step.Step{Outcome: step.OK}
}

// first names one, and counts the others.
func first(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("%s and %d more", all[0], len(all)-1)
}

func generic(v apiextensionsv1.CustomResourceDefinitionVersion) (object map[string]any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		panic(err) // it came from JSON
	}
	return object
}

// differences are the fields that got lacks, that only got has, and whose other rules differ, as paths in an object. Descriptions are no
// rules.
func differences(want, got map[string]any) (lacks, more, other []string) {
	var schema func(at string, want, got map[string]any)
	schema = func(at string, want, got map[string]any) {
		wants, _ := want["properties"].(map[string]any)
		gots, _ := got["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(wants)) {
			w, _ := wants[name].(map[string]any)
			if g, there := gots[name].(map[string]any); there {
				schema(strings.TrimPrefix(at+"."+name, "."), w, g)
			} else {
				lacks = append(lacks, strings.TrimPrefix(at+"."+name, "."))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(gots)) {
			if wants[name] == nil {
				more = append(more, strings.TrimPrefix(at+"."+name, "."))
			}
		}
		for _, below := range []string{"items", "additionalProperties"} {
			w, _ := want[below].(map[string]any)
			g, _ := got[below].(map[string]any)
			if w != nil && g != nil {
				schema(at+"[]", w, g)
			}
		}
		if !reflect.DeepEqual(without(want, "properties", "items", "additionalProperties", "description"), without(got, "properties", "items", "additionalProperties", "description")) {
			other = append(other, at)
		}
	}
	schemaOf := func(v map[string]any) map[string]any {
		s, _ := v["schema"].(map[string]any)
		s, _ = s["openAPIV3Schema"].(map[string]any)
		return s
	}
	schema("", schemaOf(want), schemaOf(got))
	return lacks, more, other
}

func without(object map[string]any, keys ...string) map[string]any {
	rest := maps.Clone(object)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}
