package codex

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// ranks gives each kind of item its place in the order of a reply.
var ranks = map[string]int{
	"reasoning": 0, "message": 1, "function_call": 2, "custom_tool_call": 2, "local_shell_call": 2, "tool_search_call": 2, "web_search_call": 2, "image_generation_call": 2,
}

// item adds one item to the history.
func (x *run) item(p format.Value) error {
	i := len(x.r.Messages)
	if p.Kind() != jsonscan.Object {
		return x.in.Want(p, rollout.At(i), "/payload", "an item")
	}
	kind := p.Get("type").Word()
	if kind == "" && p.Get("role").Kind() == jsonscan.String {
		kind = "message"
	}
	switch {
	case kind == "message" && !p.Get("role").Is("assistant"):
		return x.message(p, i)
	case strings.HasSuffix(kind, "_output"):
		return x.output(p, kind, i)
	case kind == "ghost_snapshot" || kind == "compaction_trigger":
		return nil
	case kind == "compaction" || kind == "compaction_summary" || kind == "context_compaction":
		x.open, x.lost = false, true // encrypted
		return nil
	}
	rank, known := ranks[kind]
	if !known {
		x.notUnderstood("items", kind)
		x.open, x.lost = false, true
		return nil
	}
	// Without token counts, a reply ends when the rank goes back or a message follows a
	// message.
	if !x.counted && x.open && (rank < x.rank || rank == 1 && x.rank == 1) {
		x.open = false
	}
	if !x.open {
		x.begin()
	}
	x.rank = rank
	return x.grow(p, kind)
}

func (x *run) message(p format.Value, i int) error {
	role, err := x.in.Speaker(p.Get("role").String(), i, "/payload/role")
	if err != nil {
		return err
	}
	body := p.Get("content")
	if body.IsNull() {
		return x.in.Fail(rollout.At(i), "/payload/content", "the message has no content: %s", format.Shape(p))
	}
	m := rollout.Message{Role: role}
	if err := x.in.Content(&m, body, i); err != nil {
		return err
	}
	x.push(m)
	return nil
}

// output adds the result of a call.
func (x *run) output(p format.Value, kind string, i int) error {
	m := rollout.Message{Role: rollout.RoleTool, ToolCallID: p.Get("call_id").String()}
	body := p.Get("output")
	switch {
	case body.Kind() == jsonscan.Object: // the first versions
		body = body.Get("content")
	case kind == "tool_search_output":
		m.Content = string(p.Get("tools").Clone())
		x.push(m)
		return nil
	}
	if body.IsNull() {
		return x.in.Fail(rollout.At(i), "/payload/output", "the result has no output: %s", format.Shape(p))
	}
	if err := x.in.Content(&m, body, i); err != nil {
		return err
	}
	x.push(m)
	return nil
}

// begin starts a reply.
func (x *run) begin() {
	at := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy}
	if x.copying {
		m.Sampled = rollout.SampledCopied
	} else {
		t := rollout.Turn{Message: at, Step: len(x.r.Turns)}
		x.see(&t)
		x.r.Turns = append(x.r.Turns, t)
	}
	x.push(m)
	x.open = true
}

// see sets the context of a turn to the current history.
func (x *run) see(t *rollout.Turn) {
	if first := x.r.TemplateKwargs["reasoning_effort"]; x.lost || first != nil && string(first) != string(format.Quote(x.effort)) {
		if !x.lost && !x.unknown["effort"] {
			x.unknown["effort"] = true
			x.in.Note("template_kwargs_differ", rollout.At(t.Message), "the reasoning effort is another than at the first reply: what was seen from here on cannot be rendered")
		}
		if x.lost && x.lostAt < 0 {
			x.lostAt = t.Message
		}
		t.Context.Unknown = true
		return
	}
	t.Context.Parts = format.Shown(x.history, t.Message)
}

// grow adds an item to the open reply.
func (x *run) grow(p format.Value, kind string) error {
	i := len(x.r.Messages) - 1
	m := &x.r.Messages[i]
	call := func(name string, arguments format.Value) {
		c := rollout.ToolCall{ID: format.FirstID(p, "call_id", "id"), Name: name}
		format.SetArguments(&c, arguments)
		m.ToolCalls = append(m.ToolCalls, c)
	}
	switch kind {
	case "reasoning":
		x.reasoning(m, p, i)
	case "local_shell_call":
		call("local_shell", p.Get("action"))
	case "tool_search_call":
		call("tool_search", p.Get("arguments"))
	default:
		if kind == "message" && p.Get("content").IsNull() {
			return x.in.Fail(rollout.At(i), "/payload/content", "the reply has no content: %s", format.Shape(p))
		}
		_, err := x.in.AddItem(m, p, i)
		return err
	}
	return nil
}

// reasoning adds the model's reasoning. A summary is written by another model; it goes to
// Extra.
func (x *run) reasoning(m *rollout.Message, p format.Value, i int) {
	var said []string
	for _, c := range p.Get("content").Items() {
		if s := c.Get("text").String(); s != "" {
			said = append(said, s)
		}
	}
	switch {
	case said != nil:
		m.Reasoning += strings.Join(said, "\n")
	case x.raw != "":
		m.Reasoning += x.raw
	case m.Reasoning == "":
		x.hidden++
		if x.hidden == 1 {
			x.in.NoteRedacted(i)
		}
		if s := format.Summary(p); s != "" {
			format.KeepText(&m.Extra, "reasoning_summary", s)
		}
	}
	x.raw = ""
}

// Finish emits the rollout.
func (x *run) Finish() error {
	r := x.r
	if len(r.Messages) == 0 {
		return nil
	}
	if x.lostAt >= 0 {
		x.in.Note("context_lost", rollout.At(x.lostAt), "what the model saw from here on is not recorded: a compaction tells no history or an encrypted one, turns were taken back, or a line is missing or not understood")
	}
	r.Turns = slices.DeleteFunc(r.Turns, func(t rollout.Turn) bool {
		m := &r.Messages[t.Message]
		empty := m.Content == "" && len(m.Parts) == 0 && len(m.ToolCalls) == 0
		if empty {
			m.Sampled = rollout.SampledUnknown
			x.in.Note("reply_not_recorded", rollout.At(t.Message), "the file holds no text and no call of this reply; it is not trained")
		}
		return empty
	})
	for i := range r.Turns {
		r.Turns[i].Step = i
	}
	x.in.NoteHidden(r)
	x.in.NoteParts(r)
	x.in.UnlinkResults(r)
	return x.in.Emit(r)
}
