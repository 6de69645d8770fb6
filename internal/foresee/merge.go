package foresee

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/cldmnky/oooi/internal/plan/desired"
)

// merged is a live object after what is planned of it has changed from one text to another. What was not planned stays, with the values that
// the schema gives to fields that are left out.
func merged(before, after, live []byte) ([]byte, error) {
	var was, is, has any
	for _, text := range []struct {
		from []byte
		into *any
	}{{before, &was}, {after, &is}, {live, &has}} {
		if len(text.from) == 0 {
			continue
		}
		if err := json.Unmarshal(text.from, text.into); err != nil {
			return nil, err
		}
	}
	return desired.Encoded(follow(was, is, has)), nil
}

func follow(was, is, has any) any {
	if has != nil && reflect.DeepEqual(was, is) {
		return has
	}
	switch is := is.(type) {
	case map[string]any:
		return followMap(was, is, has)
	case []any:
		before, _ := was.([]any)
		live, _ := has.([]any)
		next := []any{}
		for _, entry := range is {
			next = append(next, followEntry(before, entry, live))
		}
		return next
	}
	return is
}

func followMap(was any, is map[string]any, has any) any {
	before, _ := was.(map[string]any)
	live, _ := has.(map[string]any)
	next := map[string]any{}
	for name, value := range live {
		if _, went := before[name]; !went {
			next[name] = value
		}
	}
	for name, value := range is {
		next[name] = follow(before[name], value, live[name])
	}
	return next
}

// followEntry finds an entry of a list in the live one: at the place where it was planned before, or by its name.
func followEntry(before []any, entry any, live []any) any {
	at := slices.IndexFunc(before, func(b any) bool { return reflect.DeepEqual(b, entry) })
	if at >= 0 && len(before) == len(live) {
		return live[at]
	}
	return follow(named(before, entry), entry, named(live, entry))
}

func named(list []any, entry any) any {
	of, _ := entry.(map[string]any)
	for _, one := range list {
		if o, is := one.(map[string]any); is && o["name"] != nil && o["name"] == of["name"] {
			return o
		}
	}
	return nil
}
