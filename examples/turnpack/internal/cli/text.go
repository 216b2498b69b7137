package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts prints a histogram, most frequent first.
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

// LeftOut ends a sentence by what a target left out, "" for nothing.
func LeftOut(m map[string]int) string {
	if len(m) == 0 {
		return ""
	}
	return "; left out for the target: " + Counts(m)
}

// Share prints part of whole in per cent, and no share of nothing or of all but
// for exactly that.
func Share[T int | int64](part, whole T) string {
	p := 100 * float64(part) / float64(max(whole, 1))
	if part > 0 && part < whole {
		p = min(max(p, 0.1), 99.9)
	}
	return fmt.Sprintf("%.1f %%", p)
}

// Number prints an integer with thousands apart.
func Number[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// FirstOf shows the start of a list of names.
func FirstOf(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:few], ", ") + ", … (--json has all)"
}

// FirstFault shortens a list of faults, which are a line each.
func FirstFault(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more: --json has them)", first, 1+strings.Count(rest, "\n"))
}
