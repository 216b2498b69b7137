// Package verbs implements the commands of plumb: each verb of the library as a filter of
// JSON lines. Commands for text, tokens and rows are here, those for rewards in package
// rewards.
package verbs

import (
	"context"
	"io"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/plumb/rewards"
)

// Main runs one command and returns the exit code: 0 if all lines were answered, 1 if
// some line failed, 2 for usage or start-up errors.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	table := append(rewards.Verbs(), importVerb(), encodeVerb(), mergeVerb(), windowVerb(), idsVerb(), decodeVerb(), renderVerb(), seedParityVerb())
	return pipe.Main(ctx, table, args, stdin, stdout, stderr)
}
