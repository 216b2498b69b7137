package cli

import (
	"fmt"
	"strings"
)

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
