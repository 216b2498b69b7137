package format

import (
	"fmt"
	"math"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/callrecord"
)

// Capture reads the token fields of v into the turn. Prompts are stored in full; Emit
// compacts them.
func (in *File) Capture(t *rollout.Turn, v Value, message int) {
	in.CaptureChoice(t, v, 0, message)
}

// CaptureChoice is Capture for choice k of a response.
func (in *File) CaptureChoice(t *rollout.Turn, v Value, k, message int) {
	if v.Kind() == jsonscan.Object {
		in.takeTokens(t, tokensOf(v, k), message)
	}
}

// CaptureIDs reads recorded ids from separate values: the full prompt, the output and its
// log probabilities. A value that is not such a list is an error; absent values are not
// recorded.
func (in *File) CaptureIDs(t *rollout.Turn, prompt, output, logprobs Value) error {
	at := rollout.At(t.Message)
	p, bad, ok := prompt.AppendInt32(nil)
	if !ok && !prompt.IsNull() {
		return in.Fail(at, "/prompt_ids", "found %.40s, expected ids of tokens", bad.Raw())
	}
	o, bad, ok := output.AppendInt32(nil)
	if !ok && !output.IsNull() {
		return in.Fail(at, "/completion_ids", "found %.40s, expected ids of tokens", bad.Raw())
	}
	l, _, ok := logprobs.AppendFloat32(nil)
	if !ok && !logprobs.IsNull() {
		in.incomplete(t, "log probabilities that are no numbers")
		return nil
	}
	in.TakeIDs(t, p, o, l)
	return nil
}

// TakeIDs sets the prompt, output and log probabilities of a turn; nothing if output is
// empty.
func (in *File) TakeIDs(t *rollout.Turn, prompt, output []int32, logprobs []float32) {
	if len(output) == 0 {
		return
	}
	if len(logprobs) > 0 && len(logprobs) != len(output) {
		in.incomplete(t, fmt.Sprintf("%d log probabilities for %d sampled ids", len(logprobs), len(output)))
		return
	}
	for i, x := range logprobs {
		switch {
		case x != x || x > maxRounding || math.IsInf(float64(x), 0):
			in.incomplete(t, fmt.Sprintf("the log probability %v of token %d is none", x, i))
			return
		case x > 0:
			logprobs[i] = 0
		}
	}
	t.Prompt, t.Output = rollout.PromptIDs{Add: prompt}, output
	if len(logprobs) > 0 {
		t.Logprobs = logprobs
	}
}

// maxRounding is how far above 0 a log probability may be because of rounding.
const maxRounding = 1e-3

// tokensOf reads the token fields of choice k. Unusable fields (log probabilities that are
// not numbers, ids that are not integers, columns of unequal length) make the call
// incomplete: its text is valid, its ids are not.
func tokensOf(v Value, k int) callrecord.Tokens {
	tok, err := callrecord.Read(v, k)
	if e, ok := err.(*rollout.Error); ok {
		tok = callrecord.Tokens{Present: true, FinishReason: tok.FinishReason, Incomplete: e.Where.Field + ": " + e.Msg}
	}
	return tok
}

// CheckUsage compares the ids of a turn with the usage that its response records elsewhere.
func (in *File) CheckUsage(t *rollout.Turn, response Value) {
	use := callrecord.CountOf(response.Get("usage"))
	if why := use.Differ(t.Prompt.Add, t.Output); why != "" && t.Incomplete == "" {
		in.incomplete(t, why)
	}
}

func (in *File) incomplete(t *rollout.Turn, why string) {
	t.Incomplete = why
	in.Note("incomplete", rollout.At(t.Message), "the record of the reply is not what was sampled, so it is context and never trained: %s", why)
}

// takeTokens copies token fields to a turn and notes what cannot be used.
func (in *File) takeTokens(t *rollout.Turn, tok callrecord.Tokens, message int) {
	at := rollout.At(message)
	if tok.FinishReason != "" {
		t.FinishReason = tok.FinishReason
	}
	if tok.Incomplete != "" {
		in.incomplete(t, tok.Incomplete)
	}
	if tok.Version != nil {
		t.Version, t.Versions = tok.Version, tok.Versions
	}
	if tok.OtherVersion != "" {
		in.Note("version_not_numeric", at, "the weights' version %.40q is no number of 0 or more and cannot be written to rows", tok.OtherVersion)
	}
	if tok.Present && tok.Prompt == nil && tok.Output == nil && tok.Logprobs == nil {
		if tok.Incomplete == "" {
			in.Note("empty_tokens", at, "the token fields are present and empty; taken as absent")
		}
		return
	}
	if tok.Clamped > 0 {
		in.Note("logprob_clamped", at, "%d log probabilities above 0 by rounding were set to 0", tok.Clamped)
	}
	t.Prompt = rollout.PromptIDs{Add: tok.Prompt}
	t.Output = tok.Output
	if tok.Output != nil {
		t.Logprobs = tok.Logprobs
	} else if tok.Logprobs != nil {
		in.Note("logprobs_without_ids", at, "%d log probabilities without token ids cannot be used", len(tok.Logprobs))
	}
}

// SamplingOf returns the sampling settings of a request, including those that a client
// passes in a body for parameters that the API lacks; nil if there are none.
func SamplingOf(params Value) *rollout.Sampling {
	var s rollout.Sampling
	number := func(to **float32, v Value) {
		if f, ok := v.Float(); ok && *to == nil && f >= 0 && f <= math.MaxFloat32 {
			*to = new(float32(f))
		}
	}
	for _, q := range []Value{params, params.Get("extra_body"), params.Get("litellm_extra_body"), params.Get("sampling_params")} {
		number(&s.Temperature, q.Get("temperature"))
		number(&s.TopP, q.Get("top_p"))
		number(&s.MinP, q.Get("min_p"))
		if n, ok := q.Get("top_k").Int(); ok && s.TopK == nil && n == int(int32(n)) {
			s.TopK = new(int32(n))
		}
		if n, ok := q.Get("seed").Int(); ok && s.Seed == nil {
			s.Seed = new(int64(n))
		}
	}
	if s == (rollout.Sampling{}) {
		return nil
	}
	return &s
}
