package capture

import (
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
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
}

// maxRounding is how far above 0 a log probability may be by rounding.
const maxRounding = 1e-3

// Decode reads the token fields of one recorded object: a whole response of an
// engine, a choice, a message, an item or a metrics record. Absent fields give
// zero Tokens and no error; ids that are not integers, log probabilities that
// are not finite numbers of at most 0, and columns of unequal length are KindInput
// errors with the field.
func Decode(raw []byte) (Tokens, error) {
	var d jsonscan.Doc
	v, err := d.Parse(raw, jsonscan.Options{NonFinite: true})
	if err != nil {
		return Tokens{}, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the token record is not JSON: %w", err)
	}
	return FromValue(v)
}

// FromValue is Decode for a value that is already parsed.
func FromValue(v jsonscan.Value) (Tokens, error) { return FromChoice(v, 0) }

// FromChoice is FromValue for choice k of a response with several, numbered from 0
// as they stand there. What the response says of its sampled tokens without naming
// a choice is that of choice 0.
func FromChoice(v jsonscan.Value, k int) (Tokens, error) {
	r := reader{choice: k}
	if v.Kind() != jsonscan.Object {
		return r.t, nil
	}
	choice := jsonscan.Value{}
	for i, c := range v.Get("choices").Items() {
		if i == k {
			choice = c
			break
		}
	}
	if k > 0 {
		r.shared(v)
		r.shared(v.Get("provider_specific_fields"))
		for _, o := range []jsonscan.Value{choice, choice.Get("message"), choice.Get("meta_info"), choice.Get("provider_specific_fields"), choice.Path("message", "provider_specific_fields")} {
			r.object(o)
		}
		return r.done()
	}
	for _, o := range []jsonscan.Value{
		v, choice, choice.Get("message"), v.Get("meta_info"), choice.Get("meta_info"),
		v.Get("provider_specific_fields"), choice.Get("provider_specific_fields"), choice.Path("message", "provider_specific_fields"),
	} {
		r.object(o)
	}
	return r.done()
}

// shared reads what an object over several choices says of each: the prompt, and
// lists with one list for each choice.
func (r *reader) shared(v jsonscan.Value) {
	for key, m := range v.Members() {
		switch key {
		case "prompt_token_ids":
			r.ids(&r.t.Prompt, key, m)
		case "response_token_ids":
			if list, ok := r.listed(m); ok {
				r.ids(&r.t.Output, key, list)
			}
		}
	}
}

// listed is the choice's own of a list with one list for each choice.
func (r *reader) listed(m jsonscan.Value) (own jsonscan.Value, ok bool) {
	for i, x := range m.Items() {
		if x.Kind() != jsonscan.Array {
			break
		}
		if i == r.choice {
			return x, true
		}
	}
	return own, false
}

func (r *reader) done() (Tokens, error) {
	if r.err == nil && r.t.Output != nil && r.t.Logprobs != nil && len(r.t.Output) != len(r.t.Logprobs) {
		r.fail("logprobs", "found %d log probabilities for %d sampled ids", len(r.t.Logprobs), len(r.t.Output))
	}
	return r.t, r.err
}

type reader struct {
	choice int
	t      Tokens
	err    error
}

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...)
	}
}

func (r *reader) object(v jsonscan.Value) {
	for key, m := range v.Members() {
		switch key {
		case "prompt_token_ids":
			r.ids(&r.t.Prompt, key, m)
		case "token_ids", "completion_token_ids", "generation_token_ids", "output_token_ids", "output_ids":
			r.ids(&r.t.Output, key, m)
		case "response_token_ids": // one list, or one for each choice
			if list, ok := r.listed(m); ok {
				m = list
			}
			r.ids(&r.t.Output, key, m)
		case "generation_log_probs", "completion_logprobs":
			r.logprobs(key, m)
		case "logprobs":
			if m.Kind() == jsonscan.Array {
				r.logprobs(key, m)
			} else {
				r.content(m.Get("content"))
				r.completions(m.Get("token_logprobs"))
			}
		case "output_token_logprobs":
			r.triples(key, m)
		case "input_token_logprobs":
			r.prompt(key, m)
		case "finish_reason":
			if s, ok := m.Text(); ok {
				r.t.FinishReason = s
			} else if s, ok := m.Get("type").Text(); ok {
				r.t.FinishReason = s
			}
		}
	}
}

func (r *reader) ids(to *[]rollout.TokenID, field string, v jsonscan.Value) {
	if v.Kind() != jsonscan.Array {
		return
	}
	r.t.Present = true
	if v.Len() == 0 || *to != nil {
		return
	}
	ids, bad, ok := v.AppendInt32(nil)
	if !ok {
		r.fail(field, "token id %.40s is not an integer of 32 bits", bad.Raw())
		return
	}
	for i, id := range ids {
		if id < 0 {
			r.fail(field, "token id %d at position %d is negative", id, i)
			return
		}
	}
	*to = ids
}

func (r *reader) logprobs(field string, v jsonscan.Value) {
	if v.Kind() != jsonscan.Array {
		return
	}
	r.t.Present = true
	if v.Len() == 0 || r.t.Logprobs != nil {
		return
	}
	for _, m := range v.Items() {
		if !r.logprob(field, m) {
			return
		}
	}
}

func (r *reader) logprob(field string, v jsonscan.Value) bool {
	at := len(r.t.Logprobs)
	f, ok := v.Float()
	if !ok || f > maxRounding || f < -math.MaxFloat32 {
		r.t.Logprobs = nil
		r.fail(field, "log probability %.40s at position %d is not a finite number of at most 0", v.Raw(), at)
		return false
	}
	if f > 0 {
		f = 0
		r.t.Clamped++
	}
	r.t.Logprobs = append(r.t.Logprobs, float32(f))
	return true
}

// content reads OpenAI's list of per-token objects; vLLM can spell the token as
// its id.
func (r *reader) content(v jsonscan.Value) {
	if v.Kind() != jsonscan.Array {
		return
	}
	r.t.Present = true
	if v.Len() == 0 || r.t.Logprobs != nil {
		return
	}
	var ids []rollout.TokenID
	for _, m := range v.Items() {
		if !r.logprob("logprobs/content", m.Get("logprob")) {
			return
		}
		if digits, ok := strings.CutPrefix(m.Get("token").String(), "token_id:"); ok {
			if id, err := strconv.ParseInt(digits, 10, 32); err == nil && id >= 0 {
				ids = append(ids, rollout.TokenID(id))
			}
		}
	}
	if r.t.Output == nil && len(ids) == len(r.t.Logprobs) {
		r.t.Output = ids
	}
}

// completions reads the list of the completions API. With echo it begins with the
// prompt, whose first token has no log probability, and is left.
func (r *reader) completions(v jsonscan.Value) {
	for _, first := range v.Items() {
		if !first.IsNull() {
			r.logprobs("logprobs/token_logprobs", v)
		}
		return
	}
}

func (r *reader) triples(field string, v jsonscan.Value) {
	if v.Kind() != jsonscan.Array {
		return
	}
	r.t.Present = true
	if v.Len() == 0 {
		return
	}
	known := r.t.Logprobs != nil // from another field, which may lack the ids
	var ids []rollout.TokenID
	for i, m := range v.Items() {
		lp, id, ok := pair(m)
		if !ok {
			r.fail(field, "entry %d is not a list of log probability and id", i)
			return
		}
		if !known && !r.logprob(field, lp) {
			return
		}
		ids = append(ids, id)
	}
	if r.t.Output == nil {
		r.t.Output = ids
		return
	}
	for i := range min(len(ids), len(r.t.Output)) {
		if ids[i] != r.t.Output[i] {
			r.fail(field, "entry %d is token %d, the output ids have %d there", i, ids[i], r.t.Output[i])
			return
		}
	}
}

// prompt reads SGLang's prompt tokens; the first has no log probability.
func (r *reader) prompt(field string, v jsonscan.Value) {
	if v.Kind() != jsonscan.Array || v.Len() == 0 || r.t.Prompt != nil {
		return
	}
	r.t.Present = true
	var ids []rollout.TokenID
	for i, m := range v.Items() {
		_, id, ok := pair(m)
		if !ok {
			r.fail(field, "entry %d is not a list of log probability and id", i)
			return
		}
		ids = append(ids, id)
	}
	r.t.Prompt = ids
}

func pair(v jsonscan.Value) (logprob jsonscan.Value, id rollout.TokenID, ok bool) {
	for i, m := range v.Items() {
		switch i {
		case 0:
			logprob = m
		case 1:
			n, isInt := m.Int()
			return logprob, rollout.TokenID(n), isInt && n >= 0 && n == int(int32(n))
		}
	}
	return logprob, 0, false
}
