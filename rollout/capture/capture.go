package capture

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/callrecord"
)

// Tokens is what one model call recorded. The slices are the caller's.
type Tokens struct {
	// Present is true when any token field was there, empty ones included.
	Present bool
	Prompt  []rollout.TokenID // full prompt, nil when not recorded or empty
	Output  []rollout.TokenID // sampled ids, nil when not recorded or empty
	// Logprobs are natural logs, one per sampled token. They may be recorded
	// without Output; otherwise the lengths are equal.
	Logprobs     []float32
	FinishReason string // of the engine, "" unknown
	// Clamped counts log probabilities above 0 by rounding (at most 1e-3), which
	// were set to 0.
	Clamped int
	// PromptCount and OutputCount are the tokens that the engine's usage counts, nil
	// where it counts none. Of several choices OutputCount is the sum.
	PromptCount, OutputCount *int
	// Incomplete says how ids differ from what the usage counts: they are not what
	// was sampled and must not be trained. "" where they agree, or nothing is counted.
	Incomplete string
	// Version is the policy version that sampled Output, or its first token where
	// Versions has several runs; nil unknown.
	Version  *int32
	Versions []rollout.VersionRun
	// OtherVersion is a recorded version that is no number of 0 or more.
	OtherVersion string
}

// Decode reads the token fields of one recorded object: a whole response of an
// engine, a choice, a message, an item or a metrics record. Absent fields give
// zero Tokens and no error; ids that are not integers, log probabilities that
// are not finite numbers of at most 0, and columns of unequal length are KindInput
// errors with the field.
func Decode(raw []byte) (Tokens, error) { return decodeChoice(raw, 0) }

// decodeChoice is Decode for choice k of a response with several, numbered from 0
// as they stand there. What the response says of its sampled tokens without naming
// a choice is that of choice 0.
func decodeChoice(raw []byte, k int) (Tokens, error) {
	var d jsonscan.Doc
	v, err := d.Parse(raw, jsonscan.Options{NonFinite: true})
	if err != nil {
		return Tokens{}, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the token record is not JSON: %w", err)
	}
	t, err := callrecord.Read(v, k)
	return Tokens(t), err
}
