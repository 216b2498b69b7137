// Package callrecord reads the token fields of one recorded model call from a parsed JSON value. Package
// capture is its public interface.
package callrecord

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Tokens is capture.Tokens, which documents the fields.
type Tokens struct {
	Present      bool
	Prompt       []rollout.TokenID
	Output       []rollout.TokenID
	Logprobs     []float32
	FinishReason string
	Clamped      int
	PromptCount  *int
	OutputCount  *int
	Incomplete   string
	Version      *int32
	Versions     []rollout.VersionRun
	OtherVersion string
}

// maxRounding is the largest positive log probability accepted as a rounding error of 0.
const maxRounding = 1e-3

// Read reads the tokens of choice k of a response, counted from 0 in the recorded order. Sampled tokens that
// the response does not assign to a choice belong to choice 0.
func Read(v jsonscan.Value, k int) (Tokens, error) {
	r := reader{choice: k}
	r.count.add(v)
	r.count.add(v.Get("usage"))
	r.weights(v)
	r.weights(v.Get("metadata")) // SGLang's chat
	choice := jsonscan.Value{}
	for i, c := range v.Get("choices").Items() {
		if i == k {
			choice = c
			break
		}
	}
	for _, o := range []jsonscan.Value{v.Get("meta_info"), choice, choice.Get("meta_info")} {
		r.weights(o)
	}
	if v.Get("choices").Len() > 1 {
		r.others = v.Get("choices")
	} else {
		r.count.add(v.Get("meta_info"))
		r.count.add(choice.Get("meta_info"))
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

// shared reads the fields of an object that cover several choices: the prompt, and lists with one list for each
// choice.
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

// listed returns the choice's list from a list with one list for each choice.
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

// Count holds the tokens that an engine counted, nil if it did not.
type Count struct {
	Prompt, Output *int
	cached         int // of the prompt, counted separately by the Messages API
}

// CountOf reads usage under the names of the chat, Responses and Messages APIs and of SGLang. A count of 0 is
// ignored.
func CountOf(usage jsonscan.Value) (c Count) {
	c.add(usage)
	return c
}

func (c *Count) add(v jsonscan.Value) {
	count := func(to **int, keys ...string) {
		for _, key := range keys {
			if n, ok := v.Get(key).Int(); ok && n > 0 && *to == nil {
				*to = new(n)
			}
		}
	}
	count(&c.Prompt, "prompt_tokens", "input_tokens")
	count(&c.Output, "completion_tokens", "output_tokens")
	for _, key := range []string{"cache_creation_input_tokens", "cache_read_input_tokens"} {
		if n, ok := v.Get(key).Int(); ok && n > 0 {
			c.cached += n
		}
	}
}

// Differ says how the ids differ from the engine's counts, "" if they agree or no ids were recorded. A recorded
// prompt without the reply's ids is a difference.
func (c Count) Differ(prompt, output []rollout.TokenID) string {
	return c.differ(len(prompt), len(output), output != nil || prompt != nil, "")
}

func (c Count) differ(prompt, output int, recorded bool, of string) string {
	var why []string
	if n := c.Prompt; n != nil && prompt > 0 && *n != prompt && *n+c.cached != prompt {
		why = append(why, fmt.Sprintf("usage counts %d prompt tokens, %d ids are recorded", *n, prompt))
	}
	if n := c.Output; n != nil && recorded && *n != output {
		why = append(why, fmt.Sprintf("usage counts %d completion tokens%s, %d ids are recorded", *n, of, output))
	}
	return strings.Join(why, "; ")
}

// weights reads the version of the weights: one for all tokens, or one for each.
func (r *reader) weights(v jsonscan.Value) {
	if x := v.Get("weight_version"); r.t.Version == nil && !x.IsNull() {
		word := x.String()
		if x.Kind() == jsonscan.Number {
			word = string(x.Raw())
		}
		if n, err := strconv.ParseInt(word, 10, 32); err == nil && n >= 0 {
			r.t.Version = new(int32(n))
		} else if word != "default" { // SGLang's value if none was set
			r.t.OtherVersion = word
		}
	}
	if list := v.Get("output_versions"); r.versions == nil && list.Kind() == jsonscan.Array {
		r.versions, _, _ = list.AppendInt32(nil)
		if len(r.versions) != list.Len() {
			r.fail("output_versions", "found entries that are no integers")
		}
	}
}

// runs converts one version for each token to runs.
func (r *reader) runs() {
	if len(r.versions) == 0 || r.t.Output == nil {
		return
	}
	if len(r.versions) != len(r.t.Output) {
		r.fail("output_versions", "found %d versions for %d sampled ids", len(r.versions), len(r.t.Output))
		return
	}
	r.t.Version, r.t.Versions = nil, nil
	for i, v := range r.versions {
		if v < 0 {
			r.t.Version, r.t.Versions = nil, nil // some tokens were not sampled
			return
		}
		if i == 0 || v != r.versions[i-1] {
			r.t.Versions = append(r.t.Versions, rollout.VersionRun{From: i, Version: v})
		}
	}
	r.t.Version = new(r.versions[0])
	if len(r.t.Versions) == 1 {
		r.t.Versions = nil
	}
}

// compare compares the number of ids with the engine's counts, which cover all choices.
func (r *reader) compare() {
	have, recorded, of := len(r.t.Output), r.t.Output != nil || r.t.Prompt != nil, ""
	for i, c := range r.others.Items() {
		of = " for all choices"
		if i == r.choice {
			continue
		}
		o := reader{choice: i}
		for _, v := range []jsonscan.Value{c, c.Get("message"), c.Get("meta_info"), c.Get("provider_specific_fields"), c.Path("message", "provider_specific_fields")} {
			o.object(v)
		}
		if o.t.Output == nil {
			recorded = false // then the sum is unknown
		}
		have += len(o.t.Output)
	}
	r.t.PromptCount, r.t.OutputCount = r.count.Prompt, r.count.Output
	r.t.Incomplete = r.count.differ(len(r.t.Prompt), have, recorded, of)
}

func (r *reader) done() (Tokens, error) {
	if r.err == nil {
		r.runs()
		r.compare()
	}
	if r.err == nil && r.t.Output != nil && r.t.Logprobs != nil && len(r.t.Output) != len(r.t.Logprobs) {
		r.fail("logprobs", "found %d log probabilities for %d sampled ids", len(r.t.Logprobs), len(r.t.Output))
	}
	return r.t, r.err
}

type reader struct {
	choice   int
	others   jsonscan.Value // all choices, if there are several
	count    Count
	versions []int32 // of each token
	t        Tokens
	err      error
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
	if !r.entries(v) || *to != nil {
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

// entries reports whether v is a list with entries, and remembers a list.
func (r *reader) entries(v jsonscan.Value) bool {
	r.t.Present = r.t.Present || v.Kind() == jsonscan.Array
	return v.Kind() == jsonscan.Array && v.Len() > 0
}

func (r *reader) logprobs(field string, v jsonscan.Value) {
	if !r.entries(v) || r.t.Logprobs != nil {
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

// content reads OpenAI's list of per-token objects; in vLLM the token may be its id.
func (r *reader) content(v jsonscan.Value) {
	if !r.entries(v) || r.t.Logprobs != nil {
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

// completions reads the list of the completions API. With echo it begins with the prompt, whose first token has
// no log probability; such a list is ignored.
func (r *reader) completions(v jsonscan.Value) {
	if !v.First().IsNull() {
		r.logprobs("logprobs/token_logprobs", v)
	}
}

func (r *reader) triples(field string, v jsonscan.Value) {
	if !r.entries(v) {
		return
	}
	known := r.t.Logprobs != nil // from another field, which may have no ids
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
	if v.Len() == 0 || r.t.Prompt != nil || !r.entries(v) {
		return
	}
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
