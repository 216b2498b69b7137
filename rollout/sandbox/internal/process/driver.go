package process

import (
	"cmp"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Limits returns l with defaults for its zero fields.
func Limits(l sandbox.Limits) (sandbox.Limits, error) {
	f := faults.List{Of: "Limits."}
	f.Count("Memory", int(l.Memory))
	f.Count("Processes", l.Processes)
	return sandbox.Limits{Memory: cmp.Or(l.Memory, 4<<30), Processes: cmp.Or(l.Processes, 256)}, f.Err()
}

// Shell returns the arguments and the input with which drivers run a text: the text is an argument of bash, or
// the input if it is too long for an argument and there is no other input.
func Shell(text string, stdin []byte) (args []string, in []byte) {
	const longest = 96 << 10 // Linux takes 128 KiB
	if len(text) > longest && stdin == nil {
		return []string{"bash", "-lc", `eval "$(cat)"`}, []byte(text)
	}
	return []string{"bash", "-lc", text}, stdin
}
