package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts formats a histogram, most frequent first.
func Counts(m map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		if m[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Number(m[k]), k))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// LeftOut returns the end of a sentence with what a target left out, or "" if nothing.
func LeftOut(m map[string]int) string {
	if len(m) == 0 {
		return ""
	}
	return "; left out for the target: " + Counts(m)
}

// Share formats part of whole as a percentage. It is 0 or 100 only if that is exact.
func Share[T int | int64](part, whole T) string {
	p := 100 * float64(part) / float64(max(whole, 1))
	if part > 0 && part < whole {
		p = min(max(p, 0.1), 99.9)
	}
	return fmt.Sprintf("%.1f %%", p)
}

// Number formats an integer with commas between thousands.
func Number[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// FirstOf returns the first names of a list.
func FirstOf(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:few], ", ") + ", … (--json has all)"
}

// FirstFault returns the first line of a list of errors and the number of the others.
func FirstFault(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more: --json has them)", first, 1+strings.Count(rest, "\n"))
}
