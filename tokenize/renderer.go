package tokenize

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/chat/origin"
)

// renderer renders the contexts of one rollout.
type renderer struct {
	ctx        context.Context
	template   *chat.Template
	kwargs     map[string]chat.Value
	now        time.Time
	r          *rollout.Rollout
	tools      chat.Value
	shape      shape
	shown      []bool // messages that stood in a context or the document
	shownPlain int    // of the plain history, these are marked

	// all is the plain history; index maps its messages to those of the rollout,
	// place the other way (−1: not in it).
	all     *chat.Conversation
	index   []int32
	place   []int
	last    *chat.Result // that was rendered last
	spent   spent        // memory for the next rendering
	prompts [2]spent     // the last ones, but for those of the plain history
	answers spent        // the last one, in the same way
	probing *limitMet    // of a model that is being loaded

	stops     []string
	turns     chat.TurnCache // of the plain history
	elsewhere chat.TurnCache // of other contexts
}

// spent is the memory of a rendering, and of the columns made of it, that nobody
// reads any more.
type spent struct {
	result *chat.Result
	fields []field
	cols   columns
	turn   []int32 // by token
}

// newRenderer prepares the rollout's messages; nil when the model has no
// template.
func (j *job) newRenderer() (*renderer, error) {
	if j.model.of(j.r).Template == nil || len(j.r.Messages) == 0 {
		return nil, nil
	}
	return newRenderer(j.ctx, j.model, j.r, j.opts)
}

func newRenderer(ctx context.Context, m *Model, r *rollout.Rollout, o Options) (*renderer, error) {
	m = m.of(r)
	x := &renderer{ctx: ctx, template: m.Template, shape: m.shape, r: r, kwargs: map[string]chat.Value{}, now: o.Now, probing: m.probing,
		shown: make([]bool, len(r.Messages)), place: make([]int, len(r.Messages))}
	x.shape.by = o.PromptsBy.of(r)
	if x.now.IsZero() {
		x.now = time.Unix(0, 0).UTC()
	}
	for text := range m.reply.stops {
		x.stops = append(x.stops, text)
	}
	for k, text := range m.SpecialTokens {
		x.kwargs[k] = chat.String(text)
	}
	for i, set := range []map[string]json.RawMessage{o.Kwargs, r.TemplateKwargs} {
		for k, raw := range set {
			v, err := chat.ParseJSON(raw)
			if err != nil {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "template_kwargs/" + k}, "not a JSON value: %w", err)
			}
			if recorded := i == 1; recorded && !m.namesToken(k, raw) {
				v = chat.Recorded("template_kwargs/"+k, v)
			}
			x.kwargs[k] = v
		}
	}
	var err error
	if x.tools, err = m.tools.value(r.Tools); err != nil {
		return nil, err
	}
	var history []chat.Value
	for i := range r.Messages {
		x.place[i] = -1
		if r.Messages[i].Role == rollout.RoleExit {
			continue
		}
		m := &r.Messages[i]
		if len(m.Parts) > 1 && o.Mode == Whole && m.Sampled == rollout.SampledByPolicy {
			whole := *m // as it was sampled, with nothing between its parts
			whole.Parts, m = nil, &whole
		}
		v, err := messageValue(m, &x.shape)
		if err != nil {
			return nil, within(err, rollout.Where{Message: rollout.At(i)})
		}
		x.place[i] = len(history)
		history = append(history, v)
		x.index = append(x.index, int32(i))
	}
	x.all, err = chat.NewConversation(chat.List(history...), x.tools, chat.Null(), chat.ConversationOptions{})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// messageValue makes the dict that the template is given for m.
func messageValue(m *rollout.Message, s *shape) (chat.Value, error) {
	members := make([]chat.Member, 0, 8)
	add := func(key string, v chat.Value) { members = append(members, chat.Member{Key: key, Value: v}) }
	add("role", chat.String(string(m.Role)))
	for i, p := range m.Parts {
		if !p.IsText() {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "content"}, "part %d is of type %q: only text can be turned into tokens", i, p.Type).
				WithFix("put a text in its place, or leave the rollout out")
		}
	}
	// Templates test for an empty text far more often than for a missing one.
	if len(m.Parts) > 1 && rollout.JoinText(m.Parts) == m.Content { // as it was not shortened
		add("content", s.textParts(m))
	} else {
		add("content", s.text(m.Content))
	}
	if m.Reasoning != "" {
		add("reasoning_content", chat.String(m.Reasoning))
		if s.reasoning {
			add("reasoning", chat.String(m.Reasoning))
		}
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]chat.Value, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			args, err := s.argumentsValue(&c)
			if err != nil {
				return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tool_calls"}, "the arguments of call %d are not JSON: %w", i, err)
			}
			function := chat.Object(chat.Member{Key: "name", Value: chat.String(c.Name)}, chat.Member{Key: "arguments", Value: args})
			call := []chat.Member{{Key: "type", Value: chat.String("function")}}
			if c.ID != "" {
				call = append(call, chat.Member{Key: "id", Value: chat.String(c.ID)})
			}
			calls[i] = chat.Object(append(call, chat.Member{Key: "function", Value: function})...)
		}
		add("tool_calls", chat.List(calls...))
	}
	if m.ToolCallID != "" {
		add("tool_call_id", chat.String(m.ToolCallID))
	}
	if m.Name != "" {
		add("name", chat.String(m.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Extra)) {
		if !s.reads(key, m.Extra[key]) {
			continue
		}
		v, err := chat.ParseJSON(m.Extra[key])
		if err != nil {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "not a JSON value: %w", err)
		}
		add(key, v)
	}
	return chat.Object(members...), nil
}

// readsExtra reports whether the template may read one of the recorded keys of m.
func (s shape) readsExtra(m *rollout.Message) bool {
	for key, raw := range m.Extra {
		if s.reads(key, raw) {
			return true
		}
	}
	return false
}

// reads reports whether the template may read a recorded key that has no field
// of its own (tool_plan, prefix). Empty values of those that have one, and
// reasoning that is no text, are kept for the record alone.
func (s shape) reads(key string, raw json.RawMessage) bool {
	switch key {
	case "name", "tool_call_id", "tool_calls", "reasoning", "reasoning_content", "thinking":
		return false
	}
	return strings.Contains(s.source, key) && string(raw) != "null"
}

// plain returns how many messages of the plain history are the context of t, if
// nothing else is.
func (x *renderer) plain(t *rollout.Turn) (n int, ok bool) {
	parts := t.Context.Parts
	switch {
	case parts == nil:
		return x.before(t.Message), true
	case len(parts) == 1 && parts[0].Message == nil && parts[0].From == 0 && parts[0].To >= 0 && parts[0].To <= len(x.place):
		return x.before(parts[0].To), true
	}
	return 0, false
}

// context returns the conversation of a turn's context and, by the numbers of its
// messages, those of the rollout (−1 for notes).
func (x *renderer) context(t *rollout.Turn) (*chat.Conversation, []int32, error) {
	if n, ok := x.plain(t); ok {
		return x.all.Prefix(n), x.index, nil
	}
	numbers, index, next := []int{}, slices.Clip(x.index), 0
	var more []chat.Value // what is not in the plain history, or is here for the second time
	add := func(m *rollout.Message, source int32) error {
		v, err := messageValue(m, &x.shape)
		numbers, more, index = append(numbers, len(index)), append(more, v), append(index, source)
		return err
	}
	for _, p := range t.Context.Parts {
		if p.Message != nil {
			source := int32(-1)
			if x.stands(&p) {
				source = int32(p.From)
			}
			if err := add(p.Message, source); err != nil {
				return nil, nil, err
			}
			continue
		}
		if p.From < 0 || p.To > len(x.r.Messages) || p.From > p.To {
			return nil, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "context"}, "the context names messages [%d, %d) of %d", p.From, p.To, len(x.r.Messages))
		}
		for i := p.From; i < p.To; i++ {
			switch k := x.place[i]; {
			case k < 0:
			case k < next && slices.Contains(numbers, k): // windows only go forward
				if err := add(&x.r.Messages[i], int32(i)); err != nil {
					return nil, nil, err
				}
			default:
				numbers, next = append(numbers, k), max(next, k+1)
			}
		}
	}
	c, err := x.all.Select(numbers, more...)
	return c, index, err
}

// stands reports whether a part's message is its original, shortened or with a
// note, or one of those that a Counter numbers above the rollout's.
func (x *renderer) stands(p *rollout.ContextPart) bool {
	if p.To != p.From+1 || p.From < 0 {
		return false
	}
	return p.From >= len(x.r.Messages) || x.r.Messages[p.From].Role == p.Message.Role
}

// before is the number of messages of the plain history before message i.
func (x *renderer) before(i int) int {
	for ; i < len(x.place); i++ {
		if x.place[i] >= 0 {
			return x.place[i]
		}
	}
	return x.all.Len()
}

// prompt renders what the model saw at turn t, generation prompt included.
//
// The text is valid until the next but one is rendered.
func (x *renderer) prompt(t *rollout.Turn) (rendering, error) {
	c, index, err := x.context(t)
	if err != nil {
		return rendering{}, err
	}
	x.spent, x.prompts[0] = x.prompts[0], spent{}
	out, err := x.run(c, index, true)
	if err != nil { // the last prompt stays the last
		return rendering{}, err
	}
	x.prompts[0], x.prompts[1] = x.prompts[1], spent{result: x.last, fields: out.fields[:0]}
	if n, ok := x.plain(t); ok {
		x.showPlain(n)
		return out, nil
	}
	for i := range c.Len() {
		x.show(index[c.Number(i)])
	}
	return out, nil
}

// answered renders the same conversation with the turn's reply as its last
// message, or with instead in its place.
//
// The text is valid until the next answer is rendered, save that of a probe that
// stands instead of a reply in another context than the plain history.
func (x *renderer) answered(t *rollout.Turn, instead *rollout.Message) (rendering, error) {
	c, index, cache, err := x.withReply(t, instead)
	if err != nil {
		return rendering{}, err
	}
	if instead == nil { // what is written for a probe may be kept
		x.spent, x.answers = x.answers, spent{}
	}
	res, err := x.result(c, false)
	if err != nil {
		return rendering{}, err
	}
	out := x.rendered(res, index)
	if instead == nil {
		x.answers = spent{result: res, fields: out.fields[:0]}
	}
	turn, ok, err := x.template.LastTurn(x.ctx, c, x.input(false), res, chat.TurnOptions{Stops: x.stops, Cache: cache})
	if ok {
		turn.Message = t.Message
		out.turns = []chat.Turn{turn}
	}
	return out, err
}

// withReply is the conversation of a turn's context with its reply, or with instead in
// its place, and what is known of the turns of such conversations.
func (x *renderer) withReply(t *rollout.Turn, instead *rollout.Message) (*chat.Conversation, []int32, *chat.TurnCache, error) {
	if n, ok := x.plain(t); ok && n == x.before(t.Message) && instead == nil {
		return x.all.Prefix(n + 1), x.index, &x.turns, nil
	}
	with := *t
	with.Context.Parts = slices.Clip(t.Context.Parts)
	if t.Context.Parts == nil {
		with.Context.Parts = []rollout.ContextPart{{To: t.Message}}
	}
	with.Context.Parts = append(with.Context.Parts, rollout.ContextPart{From: t.Message, To: t.Message + 1, Message: instead})
	c, index, err := x.context(&with)
	return c, index, &x.elsewhere, err
}

// document renders the whole conversation.
func (x *renderer) document() (rendering, error) {
	res, err := x.result(x.all, false)
	if err != nil {
		return rendering{}, err
	}
	x.showPlain(len(x.index))
	out := x.rendered(res, x.index)
	out.turns, err = x.template.Turns(x.ctx, x.all, x.input(false), res, chat.TurnOptions{Stops: x.stops})
	for i := range out.turns {
		out.turns[i].Message = int(x.index[out.turns[i].Message])
	}
	return out, err
}

func (x *renderer) input(generationPrompt bool) chat.Input {
	return chat.Input{AddGenerationPrompt: generationPrompt, Kwargs: x.kwargs, Now: x.now}
}

func (x *renderer) run(c *chat.Conversation, index []int32, generationPrompt bool) (rendering, error) {
	res, err := x.result(c, generationPrompt)
	if err != nil {
		return rendering{}, err
	}
	return x.rendered(res, index), nil
}

func (x *renderer) result(c *chat.Conversation, generationPrompt bool) (*chat.Result, error) {
	if x.probing != nil && x.probing.err != nil {
		return nil, x.probing.err
	}
	in := x.input(generationPrompt)
	in.Reuse, x.spent.result = x.spent.result, nil
	res, err := x.template.Render(x.ctx, c, in)
	x.last = res
	if x.probing != nil && errors.Is(err, rollout.KindLimit) {
		x.probing.err = err
	}
	return res, err
}

// rendered takes over a result; index maps the numbers of its messages to those of
// the rollout.
func (x *renderer) rendered(res *chat.Result, index []int32) rendering {
	fields := x.spent.fields
	x.spent.fields = nil
	return rendering{text: res.Text, fields: appendFields(fields, res, 0, index)}
}

// appendFields appends the recorded bytes of a result from byte at on. A role that rollout
// knows is part of the template's frame: <|user|> is the template's also where it writes
// <|{{ m.role }}|>.
func appendFields(out []field, res *chat.Result, at int, index []int32) []field {
	spans := res.FieldsFrom(at)
	for i := range spans.Len() {
		from, start, end := spans.At(i)
		message, part, call := int32(-1), partOther, uint16(0)
		if m := from.Message; m >= 0 {
			p := partOf(from)
			if p == partRole {
				if knownRole(res.Text[start:end]) {
					continue
				}
				part = partRole
			} else if message = index[m]; message >= 0 {
				part, call = p, from.Call
			}
		}
		n := len(out)
		if n > 0 {
			if last := &out[n-1]; last.end == start && last.message == message && last.part == part && last.call == call {
				last.end = end
				continue
			}
		}
		if n == cap(out) {
			out = slices.Grow(out, 1)
		}
		out = out[:n+1]
		// Field by field: a copy of what was just put together would wait for it.
		f := &out[n]
		f.start, f.end, f.message, f.part, f.call = start, end, message, part, call
	}
	return out
}

// knownRole reports whether role, in capitals or not, is one with a meaning of its own.
func knownRole(role string) bool {
	switch rollout.Role(role) {
	case rollout.RoleSystem, rollout.RoleDeveloper, rollout.RoleUser, rollout.RoleAssistant, rollout.RoleTool:
		return true
	}
	lower := strings.ToLower(role)
	return lower != role && knownRole(lower)
}

// partOf is the part of a message that a field of one belongs to. A role is recorded
// text, but a part of the frame around a message wherever a template writes it, and
// written by the template itself in a generation prompt.
func partOf(f *chat.Field) part {
	switch f.Part {
	case origin.PartContent:
		return partContent
	case origin.PartReasoning:
		return partReasoning
	case origin.PartToolCalls:
		return partToolCall
	case origin.PartRole:
		if !f.IsKey {
			return partRole
		}
	case origin.PartOther:
		if up := f.Parent; f.Key == "name" && !f.IsKey && up != nil && up.Parent != nil && up.Parent.Parent == nil {
			return partName
		}
	}
	return partOther
}
