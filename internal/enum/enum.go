// Package enum names the values of small enumerations, which count from 0.
package enum

import (
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Name returns the name of value i, or what(i) if it has none.
func Name[E ~uint8](names []string, i E, what string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return what + "(" + strconv.Itoa(int(i)) + ")"
}

// Parse returns the value with the given name; the error names the field and all valid names.
func Parse[E ~uint8](names []string, name, field string) (E, error) {
	if i := slices.Index(names, name); i >= 0 {
		return E(i), nil
	}
	return 0, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "found %q, expected one of %s", name, strings.Join(names, ", "))
}
