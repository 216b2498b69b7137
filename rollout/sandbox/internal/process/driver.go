package process

import (
	"cmp"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Limits are l with the defaults of its zero fields.
func Limits(l sandbox.Limits) (sandbox.Limits, error) {
	if l.Memory < 0 || l.Processes < 0 {
		return l, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits"}, "a bound is negative, expected 0 for the default or more")
	}
	return sandbox.Limits{Memory: cmp.Or(l.Memory, 4<<30), Processes: cmp.Or(l.Processes, 256)}, nil
}

// Shell is how drivers run a text: as an argument of bash, or where it is too long for
// one, and there is no other input, by way of its input.
func Shell(text string, stdin []byte) (args []string, in []byte) {
	const longest = 96 << 10 // Linux takes 128 KiB
	if len(text) > longest && stdin == nil {
		return []string{"bash", "-lc", `eval "$(cat)"`}, []byte(text)
	}
	return []string{"bash", "-lc", text}, stdin
}
