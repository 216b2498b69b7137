package process

import (
	"cmp"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Limits returns l with defaults for its zero fields.
func Limits(l sandbox.Limits) (sandbox.Limits, error) {
	if l.Memory < 0 || l.Processes < 0 {
		return l, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits"}, "a bound is negative, expected 0 for the default or more")
	}
	return sandbox.Limits{Memory: cmp.Or(l.Memory, 4<<30), Processes: cmp.Or(l.Processes, 256)}, nil
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
