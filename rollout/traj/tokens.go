package traj

import (
	"fmt"
	"math"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/callrecord"
)

// capture takes over the token fields of v. Prompts are kept in full until
// emit compacts them.
func (j *fileReader) capture(t *rollout.Turn, v value, message int) {
	j.captureChoice(t, v, 0, message)
}

// captureChoice is capture for choice k of a response.
func (j *fileReader) captureChoice(t *rollout.Turn, v value, k, message int) {
	if v.Kind() == jsonscan.Object {
		j.take(t, tokensOf(v, k), message)
	}
}

// tokensOf reads token fields. Those that are none (log probabilities that are no
// numbers, ids that are no integers, columns of unequal length) make the call
// incomplete: its text is what it is, its ids are not what was sampled.
func tokensOf(v value, k int) callrecord.Tokens {
	tok, err := callrecord.Read(v, k)
	if e, ok := err.(*rollout.Error); ok {
		tok = callrecord.Tokens{Present: true, FinishReason: tok.FinishReason, Incomplete: e.Where.Field + ": " + e.Msg}
	}
	return tok
}

// counted compares the ids of a turn with the usage of its response, which stands
// elsewhere.
func (j *fileReader) counted(t *rollout.Turn, response value) {
	use := callrecord.CountOf(response.Get("usage"))
	if why := use.Differ(t.Prompt.Add, t.Output); why != "" && t.Incomplete == "" {
		j.incomplete(t, why)
	}
}

func (j *fileReader) incomplete(t *rollout.Turn, why string) {
	t.Incomplete = why
	j.note("incomplete", rollout.At(t.Message), "the record of the reply is not what was sampled, so it is context and never trained: %s", why)
}

// take moves token fields into a turn and notes what cannot be used.
func (j *fileReader) take(t *rollout.Turn, tok callrecord.Tokens, message int) {
	at := rollout.At(message)
	if tok.FinishReason != "" {
		t.FinishReason = tok.FinishReason
	}
	if tok.Incomplete != "" {
		j.incomplete(t, tok.Incomplete)
	}
	if tok.Version != nil {
		t.Version, t.Versions = tok.Version, tok.Versions
	}
	if tok.OtherVersion != "" {
		j.note("version_not_numeric", at, "the weights' version %.40q is no number of 0 or more and cannot be written to rows", tok.OtherVersion)
	}
	if tok.Present && tok.Prompt == nil && tok.Output == nil && tok.Logprobs == nil {
		if tok.Incomplete == "" {
			j.note("empty_tokens", at, "the token fields are present and empty; taken as absent")
		}
		return
	}
	if tok.Clamped > 0 {
		j.note("logprob_clamped", at, "%d log probabilities above 0 by rounding were set to 0", tok.Clamped)
	}
	t.Prompt = rollout.PromptIDs{Add: tok.Prompt}
	t.Output = tok.Output
	if tok.Output != nil {
		t.Logprobs = tok.Logprobs
	} else if tok.Logprobs != nil {
		j.note("logprobs_without_ids", at, "%d log probabilities without token ids cannot be used", len(tok.Logprobs))
	}
}

// samplingOf reads the settings of a call: of its request, or of what a client
// passes on in it for what the API has no word for. nil where there are none.
func samplingOf(params value) *rollout.Sampling {
	var s rollout.Sampling
	number := func(to **float32, v value) {
		if f, ok := v.Float(); ok && *to == nil && f >= 0 && f <= math.MaxFloat32 {
			*to = new(float32(f))
		}
	}
	for _, q := range []value{params, params.Get("extra_body"), params.Get("litellm_extra_body"), params.Get("sampling_params")} {
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

// ownSampling is what a rollout of one call was sampled with.
func ownSampling(c *rollout.Rollout) *rollout.Sampling {
	s := c.Turns[0].Sampling
	if c.Temperature == nil || s != nil && s.Temperature != nil {
		return s
	}
	var own rollout.Sampling
	if s != nil {
		own = *s
	}
	own.Temperature = c.Temperature
	return &own
}

// settleSampling compares what the turns of a run were sampled with, and notes the
// first that differs from the first turn. Calls of unlike temperature each keep
// their own and the run has none. Seeds differ as a rule.
func settleSampling(r *rollout.Rollout) {
	settings := func(i int) (s rollout.Sampling) {
		if r.Turns[i].Sampling != nil {
			s = *r.Turns[i].Sampling
		}
		return s
	}
	noted := false
	for i := 1; i < len(r.Turns); i++ {
		a, b := settings(0), settings(i)
		var differ []string
		for _, x := range [][3]string{
			{"temperature", shown(a.Temperature), shown(b.Temperature)}, {"top_p", shown(a.TopP), shown(b.TopP)},
			{"top_k", shown(a.TopK), shown(b.TopK)}, {"min_p", shown(a.MinP), shown(b.MinP)},
		} {
			if x[1] != x[2] {
				differ = append(differ, fmt.Sprintf("%s %s and %s", x[0], x[1], x[2]))
			}
		}
		if shown(a.Temperature) != shown(b.Temperature) {
			r.Temperature = nil
		}
		if differ != nil && !noted {
			noted = true
			r.Notes = append(r.Notes, rollout.Note{Code: "sampling_differs", Text: fmt.Sprintf("turns 0 and %d were sampled with other settings: %s", i, strings.Join(differ, ", "))})
		}
	}
}

func shown[T any](x *T) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprint(*x)
}
