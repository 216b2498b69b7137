package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/turnpack/turnpack/internal/atomic"
)

// Sweep removes what killed runs left in folder dir of the output name, "" for any,
// and says so.
func Sweep(w io.Writer, dir, name string) {
	Swept(w, dir, atomic.Sweep(dir, name))
}

// Swept says what was removed of folder dir, if anything.
func Swept(w io.Writer, dir string, gone []string) {
	if len(gone) > 0 {
		fmt.Fprintf(w, "removed what earlier runs that were killed left in %s: %s\n", dir, strings.Join(gone, ", "))
	}
}
