package uni

import (
	"slices"
	"unicode"
)

// Union returns the set of code points in any of the sets.
func Union(sets ...Set) Set {
	var all Set
	for _, s := range sets {
		all = append(all, s...)
	}
	slices.SortFunc(all, func(a, b Range) int { return int(a.Lo - b.Lo) })
	out := all[:0]
	for _, r := range all {
		if k := len(out); k > 0 && r.Lo <= out[k-1].Hi+1 {
			out[k-1].Hi = max(out[k-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Negate returns the complement.
func (s Set) Negate() Set {
	var out Set
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= maxRune {
		out = append(out, Range{next, maxRune})
	}
	return out
}

// Intersect returns the code points in both sets.
func (s Set) Intersect(o Set) Set { return Union(s.Negate(), o.Negate()).Negate() }

// Fold returns s with the simple case variants of its ASCII letters. As in the reference, the long s is an s and the
// Kelvin sign a k.
func (s Set) Fold() Set {
	var more Set
	for c := rune('A'); c <= 'z'; c++ {
		if !unicode.IsLetter(c) || !s.contains(c) {
			continue
		}
		for r := unicode.SimpleFold(c); r != c; r = unicode.SimpleFold(r) {
			more = append(more, Range{r, r})
		}
	}
	return Union(s, more)
}
