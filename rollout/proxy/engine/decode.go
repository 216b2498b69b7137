package engine

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// decoder reads the replies of a server. They are JSON as Python writes it, where log probabilities may be NaN,
// which the recorder judges.
type decoder struct {
	doc   jsonscan.Doc
	large bool       // it parsed an unusually large text
	seen  []progress // progress of /generate, by choice
	total int        // tokens of the choices of /generate that ended

	choices []choice // of the current event
	cuts    cuts

	raw []byte // buffer for the results of strip
}

// decoders reuses decoders and the memory of their documents.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) free() {
	d.seen, d.total, d.raw = nil, 0, nil
	if d.large {
		return
	}
	decoders.Put(d)
}

// progress counts the ids and text bytes received of a choice of /generate with cumulative events.
type progress struct{ ids, text int }

// members are the members of a reply of chat completions or completions, without its choices.
type members struct{ id, model, prompt, usage, choices, err, version jsonscan.Value }

// choice holds the members of a choice.
type choice struct{ index, ids, prompt, logprobs, meta, delta, message, text, finish, stop, matched jsonscan.Value }

// parse reads the members of a reply and its choices, into d.choices, and marks in d.cuts what the client did
// not ask for.
func (d *decoder) parse(text []byte, r *Request, stream bool) (m members, err error) {
	d.large = d.large || len(text) > 256<<10
	v, err := d.doc.Parse(text, jsonscan.Options{NonFinite: true})
	if err != nil || v.Kind() != jsonscan.Object {
		return m, broken(err, "its reply is no JSON object: %.200q", text)
	}
	d.cuts.reset()
	d.choices = d.choices[:0]
	usage := r.KeepUsage || !stream
	var o neighbours
	for k, x := range v.Fields() {
		keep := true
		switch string(k.Key()) {
		case "id":
			m.id = x
		case "model":
			m.model = x
		case "prompt_token_ids":
			m.prompt, keep = x, r.KeepIDs
		case "usage":
			m.usage, keep = x, usage
		case "choices":
			m.choices, d.choices = x, d.choices[:0]
			for _, c := range x.Items() {
				d.choice(c, r)
			}
		case "error":
			m.err = x
		case "weight_version":
			m.version = x
		}
		d.cuts.member(&o, k, x, keep)
	}
	if !m.err.IsNull() && m.choices.IsNull() {
		return m, refusal(http.StatusBadGateway, m.err)
	}
	return m, nil
}

func (d *decoder) choice(v jsonscan.Value, r *Request) {
	d.choices = append(d.choices, choice{})
	m := &d.choices[len(d.choices)-1]
	var o neighbours
	for k, x := range v.Fields() {
		keep, null := true, false
		switch string(k.Key()) {
		case "index":
			m.index = x
		case "token_ids":
			m.ids, keep = x, r.KeepIDs
		case "prompt_token_ids":
			m.prompt, keep = x, r.KeepIDs
		case "logprobs":
			m.logprobs, null = x, !r.KeepLogprobs
		case "meta_info":
			m.meta, keep = x, false
		case "delta":
			m.delta = x
		case "message":
			m.message = x
		case "text":
			m.text = x
		case "finish_reason":
			m.finish = x
		case "stop_reason":
			m.stop = x
		case "matched_stop":
			m.matched = x
		}
		d.cuts.member(&o, k, x, keep)
		if null {
			d.cuts.replace(x, "null")
		}
	}
}

// refusal reads an error object, or any value in its place.
func refusal(status int, e jsonscan.Value) *Error {
	out := &Error{Status: status, Message: e.Get("message").String(), Type: e.Get("type").String()}
	if out.Message == "" {
		out.Message = string(e.Raw())
	}
	if n, ok := e.Get("code").Int(); ok && n >= 400 && n < 600 {
		out.Status = n
	}
	out.Message, out.Type = clean(out.Message), clean(out.Type)
	return out
}

// decode reads a reply, or an event of a stream, of any path.
func (d *decoder) decode(path string, text []byte, r *Request, stream bool) (c *Chunk, err error) {
	if path == "/generate" {
		c, err = d.generate(text, r.choices())
	} else {
		c, err = d.completion(text, r, stream)
	}
	if err == nil {
		c.NoText, c.Whole = path == tokensPath, !stream
	}
	return c, err
}

// maxCalls is the maximum number of tool calls of a reply.
const maxCalls = 1024

// completion reads a reply, or an event of a stream, of chat completions or completions.
func (d *decoder) completion(text []byte, r *Request, stream bool) (*Chunk, error) {
	reply, err := d.parse(text, r, stream)
	if err != nil {
		return nil, err
	}
	c := &Chunk{ID: reply.id.String(), Model: reply.model.String(), Choices: slices.Grow([]Choice(nil), len(d.choices))}
	if r.Raw != nil {
		c.Raw = d.strip(r, &reply, text, stream)
	}
	if c.Prompt, err = ids(reply.prompt); err != nil {
		return nil, err
	}
	if u := reply.usage; !u.IsNull() {
		c.Usage = &Usage{Prompt: count(u, "prompt_tokens"), Completion: count(u, "completion_tokens"), Cached: count(u.Get("prompt_tokens_details"), "cached_tokens")}
	}
	outer := versionOf(reply.version)
	for i := range d.choices {
		x := &d.choices[i]
		k := Choice{Version: version(x.meta)}
		if k.Version == nil {
			k.Version = outer
		}
		k.Index, _ = x.index.Int()
		if prompt, err := ids(x.prompt); err != nil {
			return nil, err
		} else if prompt != nil {
			c.Prompt = prompt
		}
		if k.IDs, err = ids(x.ids); err != nil {
			return nil, err
		}
		switch content, tokens := x.logprobs.Get("content"), x.logprobs.Get("token_logprobs"); {
		case content.Kind() == jsonscan.Array:
			k.Logprobs = slices.Grow(k.Logprobs, content.Len())
			for _, t := range content.Items() {
				k.Logprobs = append(k.Logprobs, float(t.Get("logprob")))
			}
		case tokens.Kind() == jsonscan.Array:
			k.Logprobs = slices.Grow(k.Logprobs, tokens.Len())
			for _, t := range tokens.Items() {
				k.Logprobs = append(k.Logprobs, float(t))
			}
		}
		if pairs := x.meta.Get("output_token_logprobs"); pairs.Kind() == jsonscan.Array {
			k.IDs, k.Logprobs = nil, nil
			if err := k.pairs(pairs, 0, pairs.Len()); err != nil {
				return nil, err
			}
		}
		m := x.delta
		if m.IsNull() {
			m = x.message
		}
		k.Text = m.Get("content").String() + x.text.String()
		if k.Reasoning = m.Get("reasoning").String(); k.Reasoning == "" {
			k.Reasoning = m.Get("reasoning_content").String()
		}
		for i, t := range m.Get("tool_calls").Items() {
			if n, ok := t.Get("index").Int(); ok && n >= 0 {
				i = n
			}
			if i >= maxCalls {
				return nil, broken(nil, "it tells tool call %d, at most %d are read", i, maxCalls)
			}
			f := t.Get("function")
			k.Calls = append(k.Calls, CallDelta{Index: i, ID: t.Get("id").String(), Name: f.Get("name").String(), Arguments: f.Get("arguments").String()})
		}
		if k.Finish = x.finish.String(); k.Finish == "stop" {
			k.Stop = cmp.Or(x.matched.String(), x.stop.String())
		}
		c.Choices = append(c.Choices, k)
	}
	return c, nil
}

// generate reads an event of SGLang's /generate, whose text, ids and log probabilities are cumulative or
// incremental.
func (d *decoder) generate(text []byte, choices int) (*Chunk, error) {
	var c Chunk
	v, err := d.doc.Parse(text, jsonscan.Options{NonFinite: true})
	if err != nil {
		return nil, broken(err, "its reply is no JSON: %.200q", text)
	}
	if e := v.Get("error"); !e.IsNull() {
		return nil, refusal(http.StatusBadGateway, e)
	}
	one := func(i int, v jsonscan.Value) error {
		meta := v.Get("meta_info")
		if n, ok := v.Get("index").Int(); ok {
			i = n
		}
		if i < 0 || i >= choices {
			return broken(nil, "it tells choice %d of %d", i, choices)
		}
		for len(d.seen) <= i {
			d.seen = append(d.seen, progress{})
		}
		seen := &d.seen[i]
		k := Choice{Index: i, Version: version(meta)}
		pairs, total := meta.Get("output_token_logprobs"), count(meta, "completion_tokens")
		all, err := ids(v.Get("output_ids"))
		if err != nil {
			return err
		}
		// The count distinguishes the two kinds of stream: cumulative values have as many entries as there are
		// tokens so far, or more, since the lists of an event that waits (for another choice) grow, and its count
		// does not. The text is of the same kind as the ids.
		reason := meta.Get("finish_reason")
		cumulative := func(n int) bool { return n == total || n > total && total > 0 && reason.IsNull() }
		text, repeated := v.Get("text").String(), cumulative(len(all))
		if pairs.Kind() == jsonscan.Array {
			from, to := 0, pairs.Len()
			if cumulative(to) {
				from, to = min(seen.ids, total), total
			}
			if v.Get("output_ids").IsNull() {
				repeated = cumulative(pairs.Len())
			}
			if err := k.pairs(pairs, from, to); err != nil {
				return err
			}
		} else if k.IDs = all; repeated {
			k.IDs = all[min(seen.ids, total):total]
		}
		seen.ids += len(k.IDs)
		if k.Text = text; repeated {
			if seen.text > len(text) {
				return broken(nil, "its text became shorter within the stream")
			}
			k.Text = text[seen.text:]
		}
		seen.text += len(k.Text)
		c.ID = meta.Get("id").String()
		if reason.Kind() == jsonscan.Object {
			if k.Finish = reason.Get("type").String(); k.Finish == "abort" {
				return &Error{Status: http.StatusServiceUnavailable, Type: "abort", Message: clean("it aborted the reply: " + reason.Get("message").String())}
			}
			k.Stop = reason.Get("matched").String()
			d.total += total
			c.Usage = &Usage{Prompt: count(meta, "prompt_tokens"), Completion: d.total, Cached: count(meta, "cached_tokens")}
		}
		c.Choices = append(c.Choices, k)
		return nil
	}
	switch v.Kind() {
	case jsonscan.Object:
		return &c, one(0, v)
	case jsonscan.Array:
		for i, x := range v.Items() {
			if err := one(i, x); err != nil {
				return nil, err
			}
		}
		return &c, nil
	}
	return nil, broken(nil, "its reply is neither an object nor a list: %.200q", text)
}

// pairs reads the entries [log probability, id, text] from index from to before index to.
func (k *Choice) pairs(list jsonscan.Value, from, to int) error {
	for i, p := range list.Items() {
		if i < from || i >= to {
			continue
		}
		at, id, lp := 0, int64(-1), float32(math.NaN())
		if p.Kind() == jsonscan.Array {
			for _, x := range p.Items() {
				switch at {
				case 0:
					lp = float(x)
				case 1:
					if n, ok := x.Int(); ok {
						id = int64(n)
					}
				}
				at++
			}
		}
		if id < math.MinInt32 || id > math.MaxInt32 {
			return broken(nil, "id %d of a token is none", id)
		}
		k.IDs, k.Logprobs = append(k.IDs, rollout.TokenID(id)), append(k.Logprobs, lp)
	}
	return nil
}

// ids reads a list of token ids, nil if there is none.
func ids(v jsonscan.Value) ([]rollout.TokenID, error) {
	if v.IsNull() {
		return nil, nil
	}
	out, bad, ok := v.AppendInt32(make([]rollout.TokenID, 0, v.Len()))
	if !ok {
		return nil, broken(nil, "its ids are no token ids: %.60q", bad.Raw())
	}
	return out, nil
}

// float returns a number, or NaN for any other value.
func float(v jsonscan.Value) float32 {
	if f, ok := v.Float(); ok {
		return float32(f)
	}
	return float32(math.NaN())
}

func count(v jsonscan.Value, name string) int {
	n, _ := v.Get(name).Int()
	return n
}

// version returns the weight_version of a reply, nil if it is not a number.
func version(v jsonscan.Value) *int32 { return versionOf(v.Get("weight_version")) }

func versionOf(x jsonscan.Value) *int32 {
	if n, ok := x.Int(); ok && n >= 0 && n <= math.MaxInt32 {
		return new(int32(n))
	}
	return parseVersion(x.String())
}

func parseVersion(s string) *int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return nil
	}
	return new(int32(n))
}
