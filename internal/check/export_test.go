package check

import "slices"

// Names are those of all steps: the anchors of the page.
func Names() (all []string) {
	for _, c := range slices.Concat(always, installed, before) {
		all = append(all, c.name)
	}
	return all
}
