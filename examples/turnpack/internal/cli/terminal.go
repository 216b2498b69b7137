package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal says whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
