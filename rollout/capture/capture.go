package capture

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/callrecord"
)

// Tokens holds the recorded tokens of one model call. The caller owns the slices.
type Tokens struct {
	// Present is true if any token field was present, even an empty one.
	Present bool
	Prompt  []rollout.TokenID // full prompt, nil when not recorded or empty
	Output  []rollout.TokenID // sampled ids, nil when not recorded or empty
	// Logprobs are natural logs, one per sampled token. They may be recorded
	// without Output; otherwise the lengths are equal.
	Logprobs     []float32
	FinishReason string // of the engine, "" = unknown
	// Clamped counts log probabilities that rounding put above 0 (by at most 1e-3) and that were set to 0.
	Clamped int
	// PromptCount and OutputCount are the engine's usage counts, nil if it has none. With several choices
	// OutputCount is their sum.
	PromptCount, OutputCount *int
	// Incomplete says how the ids differ from the usage counts: such ids are not what was sampled and must not
	// be trained. "" if they agree, or nothing is counted.
	Incomplete string
	// Version is the policy version that sampled Output, or its first token if Versions has several runs; nil =
	// unknown.
	Version  *int32
	Versions []rollout.VersionRun
	// OtherVersion is a recorded version that is not a nonnegative integer.
	OtherVersion string
}

// Decode reads the token fields of one recorded object: a whole response of an engine, a choice, a message, an
// item or a metrics record. Absent fields give zero Tokens and no error; ids that are not integers, log
// probabilities that are not finite or above 0, and columns of unequal length are KindInput errors with the
// field.
func Decode(raw []byte) (Tokens, error) {
	var d jsonscan.Doc
	v, err := d.Parse(raw, jsonscan.Options{NonFinite: true})
	if err != nil {
		return Tokens{}, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the token record is not JSON: %w", err)
	}
	t, err := callrecord.Read(v, 0)
	return Tokens(t), err
}
