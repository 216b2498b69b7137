// Package verbs holds the commands of plumb: each verb of the library as a filter of JSON
// lines. Those about text, tokens and rows are here, those about rewards in rewards.
package verbs

import (
	"context"
	"io"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/plumb/rewards"
)

// Main runs one plumbing command and returns the process exit code:
// 0 all lines answered, 1 some line failed, 2 usage or start-up failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	table := append(rewards.Verbs(), importVerb(), encodeVerb(), mergeVerb(), windowVerb(), idsVerb(), decodeVerb(), renderVerb(), seedParityVerb())
	return pipe.Main(ctx, table, args, stdin, stdout, stderr)
}
