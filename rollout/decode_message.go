package rollout

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// message reads one message; track is false for the messages of a context,
// which are not entries of Rollout.Messages.
func (d *decoder) message(v jsonscan.Value, track bool) Message {
	m := Message{NoContent: true}
	marked := false
	m.Extra = d.object(v, "", func(key string, x jsonscan.Value) bool {
		switch key {
		case "role":
			m.Role = Role(d.text(x, "/role"))
		case "name":
			return d.filled(&m.Name, x, "/name")
		case "content":
			d.content(&m, x)
		case "reasoning", "reasoning_content", "thinking":
			if m.Reasoning != "" || key == "thinking" && x.Kind() != jsonscan.String {
				return false
			}
			return d.filled(&m.Reasoning, x, "/"+key)
		case "tool_call_id":
			return d.filled(&m.ToolCallID, x, "/tool_call_id")
		case "tool_calls":
			if x.IsNull() || x.Kind() == jsonscan.Array && x.Len() == 0 {
				return false
			}
			d.list(x, "/tool_calls", d.lim.Messages, func(_ int, c jsonscan.Value) {
				m.ToolCalls = append(m.ToolCalls, d.toolCall(c))
			})
		case "sampled":
			marked = true
			d.enum(x, "/sampled", &m.Sampled)
		default:
			return false
		}
		return true
	})
	if m.Reasoning != "" {
		delete(m.Extra, "reasoning") // empty beside another spelling that is not
	}
	if m.Role == "" && d.err == nil {
		d.fail(KindInput, v, "/role", "the message has no role")
	}
	if track {
		d.marked = append(d.marked, marked)
	}
	return m
}

func (d *decoder) content(m *Message, v jsonscan.Value) {
	switch v.Kind() {
	case jsonscan.Null:
	case jsonscan.String:
		m.NoContent = false
		m.Content = d.text(v, "/content")
	case jsonscan.Array:
		m.NoContent = false
		m.Parts = []Part{}
		d.list(v, "/content", d.lim.Messages, func(_ int, x jsonscan.Value) {
			m.Parts = append(m.Parts, d.part(x))
		})
		m.Content = JoinText(m.Parts)
	default:
		d.want(v, "/content", "a string, null or a list of parts")
	}
}

func (d *decoder) part(v jsonscan.Value) Part {
	p := Part{Raw: v.Clone()}
	switch v.Kind() {
	case jsonscan.String:
		p.Type, p.Text = "text", d.text(v, "/content")
	case jsonscan.Object:
		p.Type = v.Get("type").String()
		if t := v.Get("text"); p.IsText() && !t.IsNull() {
			p.Text = d.text(t, "/content/text")
		}
	default:
		d.want(v, "/content", "a part: an object or a string")
	}
	return p
}

// JoinText is the text of a list-shaped content: its text parts joined without
// a separator.
func JoinText(parts []Part) string {
	if len(parts) == 1 && parts[0].IsText() {
		return parts[0].Text
	}
	var b strings.Builder
	for _, p := range parts {
		if p.IsText() {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func (d *decoder) toolCall(v jsonscan.Value) ToolCall {
	c := ToolCall{Flat: true}
	var inner map[string]json.RawMessage
	named := false
	function := func(key string, m jsonscan.Value) bool {
		switch key {
		case "name":
			c.Name, named = d.text(m, "/tool_calls/name"), true
		case "arguments":
			c.ArgumentsText = m.Kind() == jsonscan.String
			if c.ArgumentsText {
				c.Arguments = d.text(m, "/tool_calls/arguments")
			} else {
				c.Arguments = string(m.Clone())
			}
		default:
			return false
		}
		return true
	}
	nested := v.Get("function").Kind() == jsonscan.Object
	c.Extra = d.object(v, "/tool_calls", func(key string, m jsonscan.Value) bool {
		switch {
		case key == "id":
			return d.filled(&c.ID, m, "/tool_calls/id")
		case key == "function" && nested:
			c.Flat = false
			d.nested(m, key, &inner, function)
			return true
		case !nested:
			return function(key, m)
		}
		return false
	})
	if !named && d.err == nil {
		d.fail(KindInput, v, "/tool_calls", "the tool call has no name")
	}
	for k, raw := range inner {
		if c.Extra == nil {
			c.Extra = map[string]json.RawMessage{}
		}
		c.Extra[k] = raw
	}
	return c
}

func (d *decoder) turn(v jsonscan.Value, earlier []Turn) Turn {
	t := Turn{Message: -1, Step: len(earlier)}
	var prompt []TokenID
	plain := false
	nested := map[string]json.RawMessage{}
	t.Extra = d.object(v, "", func(key string, m jsonscan.Value) bool {
		field := "/" + key
		switch key {
		case "id":
			t.ID = d.identifier(m, field)
		case "message":
			if !m.IsNull() {
				t.Message = d.integer(m, field)
			}
		case "step":
			t.Step = d.integer(m, field)
		case "context":
			d.context(&t.Context, m)
		case "prompt_ids":
			if plain = m.Kind() == jsonscan.Array; plain {
				prompt = d.ids(m, field)
			} else if !m.IsNull() {
				d.promptIDs(&t.Prompt, m)
			}
		case "output_ids":
			if !m.IsNull() {
				t.Output = d.ids(m, field)
			}
		case "logprobs":
			if !m.IsNull() {
				t.Logprobs = d.logprobs(m, field)
			}
		case "finish_reason":
			return d.filled(&t.FinishReason, m, field)
		case "stop_string":
			return d.filled(&t.StopString, m, field)
		case "version":
			d.version(&t, m)
		case "sampling":
			if m.IsNull() {
				return false
			}
			t.Sampling = &Sampling{}
			d.nested(m, key, &nested, func(k string, m jsonscan.Value) bool { return d.sampling(t.Sampling, k, m) })
		case "incomplete":
			return d.filled(&t.Incomplete, m, field)
		case "agent":
			return d.filled(&t.Agent, m, field)
		default:
			return false
		}
		return true
	})
	for k, raw := range nested {
		if t.Extra == nil {
			t.Extra = map[string]json.RawMessage{}
		}
		t.Extra[k] = raw
	}
	if d.err == nil && t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
		d.fail(KindInput, v.Get("logprobs"), "/logprobs", "found %d logprobs for %d output_ids, expected one each", len(t.Logprobs), len(t.Output))
	}
	if d.err != nil {
		return t
	}
	if !plain {
		// A prompt stored against another turn is taken as it is: it cannot be a base
		// for plain ones without being expanded, which costs what it saves.
		d.prompts.Add(nil, nil)
		return t
	}
	t.Prompt = d.prompts.Add(prompt, t.Output)
	return t
}

// version reads one policy version, or its runs: a list of pairs of output token
// and version.
func (d *decoder) version(t *Turn, v jsonscan.Value) {
	if v.IsNull() || v.Is("") {
		return
	}
	if v.Kind() != jsonscan.Array {
		if n := d.int32(v, "/version"); n != -1 { // as rows say that they have none
			t.Version = &n
		}
		return
	}
	d.list(v, "/version", d.lim.Tokens, func(i int, m jsonscan.Value) {
		field := "/version/" + strconv.Itoa(i)
		if m.Kind() != jsonscan.Array || m.Len() != 2 {
			d.want(m, field, "a pair of output token and version")
			return
		}
		var run VersionRun
		for k, x := range m.Items() {
			if k == 0 {
				run.From = d.integer(x, field+"/0")
			} else {
				run.Version = d.int32(x, field+"/1")
			}
		}
		t.Versions = append(t.Versions, run)
	})
	if len(t.Versions) == 0 || d.err != nil {
		return
	}
	if from := t.Versions[0].From; from != 0 {
		d.fail(KindInput, v, "/version/0", "the first run begins at output token %d, expected 0", from)
	}
	first := t.Versions[0].Version
	t.Version = &first
	if len(t.Versions) == 1 {
		t.Versions = nil
	}
}

func (d *decoder) int32(v jsonscan.Value, field string) int32 {
	n := d.integer(v, field)
	if int(int32(n)) != n {
		d.fail(KindInput, v, field, "%d does not fit 32 bits", n)
	}
	return int32(n)
}

func (d *decoder) sampling(s *Sampling, key string, v jsonscan.Value) bool {
	field := "/sampling/" + key
	number := func(to **float32) {
		f := float32(d.float(v, field))
		*to = &f
	}
	switch {
	case v.IsNull():
		return false
	case key == "temperature":
		number(&s.Temperature)
	case key == "top_p":
		number(&s.TopP)
	case key == "min_p":
		number(&s.MinP)
	case key == "top_k":
		n := d.int32(v, field)
		s.TopK = &n
	case key == "seed":
		n := int64(d.integer(v, field))
		s.Seed = &n
	default:
		return false
	}
	return true
}

func (d *decoder) empty(v jsonscan.Value, field string) bool {
	if v.Kind() == jsonscan.Array && v.Len() == 0 {
		turn, _ := d.where.Turn.Get()
		d.note("empty_tokens", 0, "turn %d: %s is present and empty; taken as absent", turn, field)
		return true
	}
	return false
}

func (d *decoder) count(v jsonscan.Value, field string) bool {
	if v.Kind() != jsonscan.Array {
		d.want(v, field, "a list")
		return false
	}
	if d.tokens += v.Len(); d.tokens > d.lim.Tokens {
		d.fail(KindLimit, v, field, "more than %d recorded ids in one rollout", d.lim.Tokens)
		return false
	}
	return true
}

func (d *decoder) ids(v jsonscan.Value, field string) []TokenID {
	if d.empty(v, field) || !d.count(v, field) {
		return nil
	}
	out, bad, ok := v.AppendInt32(nil)
	if !ok {
		d.fail(KindInput, bad, field, "token id %.40s is not an integer of 32 bits", bad.Raw())
	}
	for i, id := range out {
		if id < 0 {
			d.fail(KindInput, v, field, "token id %d at position %d is negative", id, i)
		}
	}
	return out
}

func (d *decoder) logprobs(v jsonscan.Value, field string) []float32 {
	if d.empty(v, field) || !d.count(v, field) {
		return nil
	}
	out, bad, ok := v.AppendFloat32(nil)
	if !ok {
		d.fail(KindInput, bad, field, "logprob %.40s is not a finite number", bad.Raw())
	}
	return out
}

func (d *decoder) promptIDs(p *PromptIDs, v jsonscan.Value) {
	turn, _ := d.where.Turn.Get()
	d.closed(v, "/prompt_ids", func(k string, m jsonscan.Value) bool {
		field := "/prompt_ids/" + k
		switch k {
		case "base":
			if m.IsNull() {
				return true
			}
			b := d.integer(m, field)
			if b < -1 || b >= turn {
				d.fail(KindInput, m, field, "base is turn %d, expected an earlier turn than %d, or -1", b, turn)
			}
			p.Base = At(b)
		case "keep":
			if p.Keep = d.integer(m, field); p.Keep < 0 {
				d.fail(KindInput, m, field, "keep is %d, expected 0 or more", p.Keep)
			}
		case "add":
			if m.Kind() != jsonscan.Array || m.Len() > 0 {
				p.Add = d.ids(m, field)
			}
		default:
			return false
		}
		return true
	})
	if p.Keep > 0 && p.Base == 0 {
		d.fail(KindInput, v, "/prompt_ids", "keep is %d without a base", p.Keep)
	}
}

func (d *decoder) context(c *Context, v jsonscan.Value) {
	switch {
	case v.IsNull():
	case v.Is("unknown"):
		c.Unknown = true
	case v.Kind() == jsonscan.String:
		d.fail(KindFormat, v, "/context", "found %q, expected \"unknown\" or a list of parts", v.String())
	default:
		c.Parts = []ContextPart{}
		d.list(v, "/context", d.lim.Messages, func(_ int, x jsonscan.Value) {
			var p ContextPart
			d.closed(x, "/context", func(k string, m jsonscan.Value) bool {
				switch k {
				case "from":
					p.From = d.integer(m, "/context/from")
				case "to":
					p.To = d.integer(m, "/context/to")
				case "message":
					msg := d.message(m, false)
					p.Message = &msg
				default:
					return false
				}
				return true
			})
			c.Parts = append(c.Parts, p)
		})
	}
}
