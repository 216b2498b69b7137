package lineage

import "github.com/turnpack/turnpack/rollout"

// Turn is one engine call. Its slices are borrowed: they must not change while the builder or a
// Result made from them is in use.
type Turn struct {
	// Prompt is what the engine was given: the first Keep ids of an earlier turn's full ids (prompt
	// and output), then Add. Without Base, Add is the whole prompt. Prompts stored relative to
	// earlier turns keep the memory of n calls at that of their distinct ids.
	Prompt rollout.PromptIDs
	// Output is what the policy sampled, including the stop token if the engine returned it. A turn
	// without output is listed as empty and makes no row.
	Output []rollout.TokenID
	// Logprobs is nil or one behaviour log probability per output id.
	Logprobs []float32
	// Stopped says that the call ended by itself, so that the last output id is its stop token.
	Stopped bool
	// Excluded leaves the turn untrained: it is context where later prompts repeat it, and its
	// tokens are declared as dropped by "policy".
	Excluded bool
}

func (t *Turn) check(index int, fullLen func(int) int) error {
	bad := func(field, format string, args ...any) *rollout.Error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Turn: rollout.At(index), Field: field}, format, args...)
	}
	base, ok := t.Prompt.Base.Get()
	switch {
	case ok && base >= index:
		return bad("Prompt.Base", "prompt builds on turn %d, want an earlier turn", base).WithFix("record base turns first, or give the prompt in plain ids")
	case ok && (t.Prompt.Keep < 0 || t.Prompt.Keep > fullLen(base)):
		return bad("Prompt.Keep", "prompt keeps %d ids of turn %d, which has %d", t.Prompt.Keep, base, fullLen(base))
	case !ok && t.Prompt.Keep != 0:
		return bad("Prompt.Keep", "prompt keeps %d ids of no turn", t.Prompt.Keep).WithFix("set Prompt.Base, or Keep to 0")
	case t.Logprobs != nil && len(t.Logprobs) != len(t.Output):
		return bad("Logprobs", "%d logprobs for %d output ids", len(t.Logprobs), len(t.Output)).WithFix("give one logprob per output id, or none")
	}
	return nil
}
