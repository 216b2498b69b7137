package render

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// Renderer renders the contexts of one rollout. It is not safe for concurrent use.
type Renderer struct {
	Ctx        context.Context
	Template   *Template
	kwargs     map[string]chat.Value
	now        time.Time
	R          *rollout.Rollout
	tools      chat.Value
	Shape      shape
	probe      bool   // the rollout is a probe of the template; a limit it hits is recorded
	Shown      []bool // by message: it was in a context or the document
	shownPlain int    // how many messages of the plain history are marked in Shown

	// All is the plain history; Index maps its messages to those of the rollout, and place maps the
	// other way (−1: not in it).
	All     *chat.Conversation
	Index   []int32
	place   []int
	Last    *chat.Result // the latest result
	Scratch Scratch      // memory for the next rendering
	replay  chat.Replay  // for prompts
	Memory
}

// Memory holds the last prompts and the last answer. A renderer that is done passes it to the next.
type Memory struct {
	prompts [2]Scratch
	answers Scratch
}

// Len returns the number of bytes of the texts in m.
func (m *Memory) Len() int {
	n := 0
	for _, s := range [...]Scratch{m.prompts[0], m.prompts[1], m.answers} {
		if s.Result != nil {
			n += len(s.Result.Text)
		}
	}
	return n
}

// Scratch is the memory of a rendering, free for reuse.
type Scratch struct {
	Result *chat.Result
	Fields []Field
}

// Options are the options of tokenize that rendering needs.
type Options struct {
	By     System
	Kwargs map[string]json.RawMessage
	Now    time.Time // zero = the Unix epoch
	Whole  bool      // replies are rendered as they were sampled, with nothing between their parts
	Probe  bool      // the rollout is a probe of the template
}

// New prepares the rollout's messages for its template.
func New(ctx context.Context, t *Template, r *rollout.Rollout, o Options) (*Renderer, error) {
	x, err := newAs(ctx, t, t.Shape, r, o)
	if met := t.Limit(); met != nil {
		return nil, met
	}
	return x, err
}

func newAs(ctx context.Context, t *Template, s shape, r *rollout.Rollout, o Options) (*Renderer, error) {
	x := &Renderer{Ctx: ctx, Template: t, Shape: s, R: r, kwargs: map[string]chat.Value{}, now: o.Now, probe: o.Probe,
		Shown: make([]bool, len(r.Messages)), place: make([]int, len(r.Messages))}
	x.Shape.by = o.By.of(r)
	if x.now.IsZero() {
		x.now = time.Unix(0, 0).UTC()
	}
	for k, text := range t.names {
		x.kwargs[k] = chat.String(text)
	}
	for i, set := range []map[string]json.RawMessage{o.Kwargs, r.TemplateKwargs} {
		for k, raw := range set {
			v, err := chat.ParseJSON(raw)
			if err != nil {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "template_kwargs/" + k}, "not a JSON value: %w", err)
			}
			if recorded := i == 1; recorded && !t.namesToken(k, raw) {
				v = chat.Recorded("template_kwargs/"+k, v)
			}
			x.kwargs[k] = v
		}
	}
	var err error
	if x.tools, err = toolsValue(r.Tools); err != nil {
		return nil, err
	}
	var history []chat.Value
	for i := range r.Messages {
		x.place[i] = -1
		if r.Messages[i].Role == rollout.RoleExit {
			continue
		}
		m := &r.Messages[i]
		if len(m.Parts) > 1 && o.Whole && m.Sampled == rollout.SampledByPolicy {
			sampled := *m
			sampled.Parts, m = nil, &sampled
		}
		v, err := messageValue(m, &x.Shape)
		if err != nil {
			return nil, rollout.In(err, rollout.Where{Message: rollout.At(i)})
		}
		x.place[i] = len(history)
		history = append(history, v)
		x.Index = append(x.Index, int32(i))
	}
	x.All, err = chat.NewConversation(chat.List(history...), x.tools, chat.Null(), chat.ConversationOptions{})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// plain returns the number of messages of the context of t, if that is a prefix of the plain
// history.
func (x *Renderer) plain(t *rollout.Turn) (n int, ok bool) {
	parts := t.Context.Parts
	switch {
	case parts == nil:
		return x.before(t.Message), true
	case len(parts) == 1 && parts[0].Message == nil && parts[0].From == 0 && parts[0].To >= 0 && parts[0].To <= len(x.place):
		return x.before(parts[0].To), true
	}
	return 0, false
}

// Context returns the conversation of a turn's context and, by the numbers of its messages, their
// indices in the rollout (−1 for notes).
func (x *Renderer) Context(t *rollout.Turn) (*chat.Conversation, []int32, error) {
	if n, ok := x.plain(t); ok {
		return x.All.Prefix(n), x.Index, nil
	}
	numbers, index, next := []int{}, slices.Clip(x.Index), 0
	var more []chat.Value // messages outside the plain history, or repeated
	add := func(m *rollout.Message, source int32) error {
		v, err := messageValue(m, &x.Shape)
		numbers, more, index = append(numbers, len(index)), append(more, v), append(index, source)
		return err
	}
	for _, p := range t.Context.Parts {
		if p.Message != nil {
			source := int32(-1)
			if x.Stands(&p) {
				source = int32(p.From)
			}
			if err := add(p.Message, source); err != nil {
				return nil, nil, err
			}
			continue
		}
		if p.From < 0 || p.To > len(x.R.Messages) || p.From > p.To {
			return nil, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "context"}, "the context names messages [%d, %d) of %d", p.From, p.To, len(x.R.Messages))
		}
		for i := p.From; i < p.To; i++ {
			switch k := x.place[i]; {
			case k < 0:
			case k < next && slices.Contains(numbers, k): // windows only go forward
				if err := add(&x.R.Messages[i], int32(i)); err != nil {
					return nil, nil, err
				}
			default:
				numbers, next = append(numbers, k), max(next, k+1)
			}
		}
	}
	c, err := x.All.Select(numbers, more...)
	return c, index, err
}

// Stands reports whether a part's message replaces a single message of the same role, shortened or
// with a note, or is one that a Counter numbers above the rollout's.
func (x *Renderer) Stands(p *rollout.ContextPart) bool {
	if p.To != p.From+1 || p.From < 0 {
		return false
	}
	return p.From >= len(x.R.Messages) || x.R.Messages[p.From].Role == p.Message.Role
}

// before returns the number of messages of the plain history before message i.
func (x *Renderer) before(i int) int {
	for ; i < len(x.place); i++ {
		if x.place[i] >= 0 {
			return x.place[i]
		}
	}
	return x.All.Len()
}

// Prompt renders what the model saw at turn t, generation prompt included. The text is valid until
// the second next prompt is rendered.
func (x *Renderer) Prompt(t *rollout.Turn) (Rendering, error) {
	c, index, err := x.Context(t)
	if err != nil {
		return Rendering{}, err
	}
	x.Scratch, x.prompts[0] = x.prompts[0], Scratch{}
	in := x.Input(true)
	in.Replay = &x.replay // the last prompt is in prompts[1]
	res, err := x.run(c, in)
	if err != nil { // the last prompt remains valid
		return Rendering{}, err
	}
	out := x.rendered(res, index)
	x.prompts[0], x.prompts[1] = x.prompts[1], Scratch{Result: x.Last, Fields: out.Fields[:0]}
	if n, ok := x.plain(t); ok {
		x.showPlain(n)
		return out, nil
	}
	for i := range c.Len() {
		x.show(index[c.Number(i)])
	}
	return out, nil
}

// Prompted returns the result of the last prompt, nil if that has another text.
func (x *Renderer) Prompted(text string) *chat.Result {
	if last := x.prompts[1].Result; last != nil && last.Text == text {
		return last
	}
	return nil
}

// answer is a rendered conversation that ends with a reply.
type answer struct {
	Rendering
	Conversation *chat.Conversation
	Result       *chat.Result
	Index        []int32 // by message number: its index in the rollout
	Plain        bool    // it is a prefix of the plain history
}

// Answered renders the context of t with the turn's reply as the last message, or with instead in
// place of the reply. The text is valid until the next answer is rendered; with instead, it stays
// valid.
func (x *Renderer) Answered(t *rollout.Turn, instead *rollout.Message) (a answer, err error) {
	if a.Conversation, a.Index, a.Plain, err = x.withReply(t, instead); err != nil {
		return a, err
	}
	if instead == nil { // renderings of a probe may be kept
		x.Scratch, x.answers = x.answers, Scratch{}
	}
	if a.Result, err = x.Result(a.Conversation, false); err != nil {
		return a, err
	}
	a.Rendering = x.rendered(a.Result, a.Index)
	if instead == nil {
		x.answers = Scratch{Result: a.Result, Fields: a.Fields[:0]}
	}
	return a, nil
}

// withReply returns the conversation of a turn's context with its reply, or with instead in place
// of the reply, and whether it is a prefix of the plain history.
func (x *Renderer) withReply(t *rollout.Turn, instead *rollout.Message) (c *chat.Conversation, index []int32, plain bool, err error) {
	if n, ok := x.plain(t); ok && n == x.before(t.Message) && instead == nil {
		return x.All.Prefix(n + 1), x.Index, true, nil
	}
	with := *t
	with.Context.Parts = slices.Clip(t.Context.Parts)
	if t.Context.Parts == nil {
		with.Context.Parts = []rollout.ContextPart{{To: t.Message}}
	}
	with.Context.Parts = append(with.Context.Parts, rollout.ContextPart{From: t.Message, To: t.Message + 1, Message: instead})
	c, index, err = x.Context(&with)
	return c, index, false, err
}

// Document renders the whole conversation.
func (x *Renderer) Document() (Rendering, *chat.Result, error) {
	res, err := x.Result(x.All, false)
	if err != nil {
		return Rendering{}, nil, err
	}
	x.showPlain(len(x.Index))
	return x.rendered(res, x.Index), res, nil
}

// Input returns the input of a rendering, with the template variables and the time.
func (x *Renderer) Input(generationPrompt bool) chat.Input {
	return chat.Input{AddGenerationPrompt: generationPrompt, Kwargs: x.kwargs, Now: x.now}
}

// Run renders c; index maps its messages to those of the rollout.
func (x *Renderer) Run(c *chat.Conversation, index []int32, generationPrompt bool) (Rendering, error) {
	res, err := x.Result(c, generationPrompt)
	if err != nil {
		return Rendering{}, err
	}
	return x.rendered(res, index), nil
}

// Result renders c.
func (x *Renderer) Result(c *chat.Conversation, generationPrompt bool) (*chat.Result, error) {
	return x.run(c, x.Input(generationPrompt))
}

func (x *Renderer) run(c *chat.Conversation, in chat.Input) (*chat.Result, error) {
	if x.probe {
		if err := x.Template.Limit(); err != nil {
			return nil, err
		}
	}
	in.Reuse, x.Scratch.Result = x.Scratch.Result, nil
	res, err := x.Template.Chat.Render(x.Ctx, c, in)
	x.Last = res
	if x.probe && errors.Is(err, rollout.KindLimit) && x.Ctx.Err() == nil {
		x.Template.recordLimit(err)
	}
	return res, err
}

// show records that message m was rendered, if it is one of the rollout.
func (x *Renderer) show(m int32) {
	if m >= 0 && int(m) < len(x.Shown) {
		x.Shown[m] = true
	}
}

// showPlain records that the first n messages of the plain history were rendered.
func (x *Renderer) showPlain(n int) {
	for ; x.shownPlain < n; x.shownPlain++ {
		x.show(x.Index[x.shownPlain])
	}
}

// Shown returns the number of messages that turns of r show, each counted at every turn that shows
// it, and about the bytes of their text.
func Shown(r *rollout.Rollout, turns []rollout.Turn) (messages, text int) {
	before := make([]int, len(r.Messages)+1) // bytes of text before each message
	for i := range r.Messages {
		before[i+1] = before[i] + len(r.Messages[i].Content) + len(r.Messages[i].Reasoning)
	}
	show := func(from, to int) {
		messages += max(to-from, 0)
		if 0 <= from && from < to && to < len(before) {
			text += before[to] - before[from]
		}
	}
	for i := range turns {
		if turns[i].Context.Parts == nil {
			show(0, turns[i].Message)
		}
		for _, p := range turns[i].Context.Parts {
			if p.Message == nil {
				show(p.From, p.To)
				continue
			}
			messages++
			text += len(p.Message.Content)
		}
	}
	return messages, text
}
