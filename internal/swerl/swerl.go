package swerl

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Options are the settings of a run. The zero value truncates nothing.
type Options struct {
	// MaxContext is max_context_len, the most tokens of a sample; 0 for no limit.
	MaxContext int
}

// Validate reports all errors in o.
func (o Options) Validate() error {
	if o.MaxContext < 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "swerl.Options.MaxContext"}, "is %d, want 0 (no limit) or more", o.MaxContext)
	}
	return nil
}

// Sample is a training sample. Tokens end with the response, and LossMask has one entry
// (0 or 1) per response token.
type Sample struct {
	Tokens         []rollout.TokenID `json:"tokens"`
	LossMask       []int8            `json:"loss_mask"`
	ResponseLength int               `json:"response_length"`
	Status         rollout.Status    `json:"status"` // completed, or truncated if the single sample was cut
}

// Step is the sample of one reply (dynamic_history).
type Step struct {
	Index   int       `json:"step_index"`     // position among the replies
	Context []Message `json:"context"`        // what the model saw; nil: all earlier messages unchanged
	Shown   int       `json:"context_len"`    // number of messages that the model saw
	Text    string    `json:"assistant_text"` // the reply
	Sample
}

// Message is a message as passed to the template.
type Message struct {
	Role    rollout.Role `json:"role"`
	Content string       `json:"content"`
}

// Result is the reference's encoding of one rollout. The caller owns it.
type Result struct {
	PromptIDs   []rollout.TokenID // the first two messages with the generation prompt
	ResponseIDs []rollout.TokenID // the rest without trailing user turns, before any cut
	LossMask    []int8            // one entry per response id
	Response    string            // the replies, joined with newlines
	Default     Sample            // the single sample
	Steps       []Step
}

// fixed is the number of messages in the prompt.
const fixed = 2

// Encode encodes r, whose messages must be a system and a user message, then replies with
// user messages between them. Context.Parts of a turn say what the model saw at that
// step. Errors are of KindInput if the rollout has another shape or the model has no
// template or stop token; other errors come from the template.
func Encode(ctx context.Context, model *tokenize.Model, r *rollout.Rollout, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, zero.Rollout()
	}
	if len(r.Messages) < fixed {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "the rollout has %d messages, the reference needs a system and a user message", len(r.Messages))
	}
	e, err := newEncoder(ctx, model, o)
	if err != nil {
		return nil, err
	}
	out := &Result{}
	if out.PromptIDs, err = e.ids(r.Messages[:fixed], true); err != nil {
		return nil, err
	}
	last := len(r.Messages)
	for last > fixed && r.Messages[last-1].Role == rollout.RoleUser {
		last--
	}
	out.ResponseIDs, out.LossMask = []rollout.TokenID{}, []int8{}
	for i := fixed; i < last; i++ {
		if err := e.response(&out.ResponseIDs, &out.LossMask, &r.Messages[i]); err != nil {
			return nil, err
		}
	}
	var replies []string
	for _, m := range r.Messages[fixed:last] {
		if m.Role == rollout.RoleAssistant {
			replies = append(replies, m.Content)
		}
	}
	out.Response = strings.Join(replies, "\n")
	var cut bool
	out.Default, cut = e.sample(out.PromptIDs, out.ResponseIDs, out.LossMask)
	if cut {
		out.Default.Status = rollout.StatusTruncated
	}
	for i, t := range rollout.TurnsOf(r) {
		s, err := e.step(r, i, &t)
		if err != nil {
			return nil, err
		}
		out.Steps = append(out.Steps, s)
	}
	return out, nil
}

// encoder holds what all messages share.
type encoder struct {
	ctx     context.Context
	model   *tokenize.Model
	max     int
	kwargs  map[string]chat.Value
	stock   []rollout.Message // conversation after which single messages are rendered
	baseLen int               // number of its tokens
	opener  []rollout.TokenID // the generation prompt
	stop    rollout.TokenID
}

func newEncoder(ctx context.Context, model *tokenize.Model, o Options) (*encoder, error) {
	if model == nil || model.Tokenizer == nil || model.Template == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "the model has no tokenizer or no chat template")
	}
	e := &encoder{ctx: ctx, model: model, max: o.MaxContext, kwargs: map[string]chat.Value{}, stop: -1,
		stock: []rollout.Message{{Role: rollout.RoleSystem, Content: "You are a helpful assistant."}, {Role: rollout.RoleUser, Content: "I am a user."}}}
	for _, a := range model.Tokenizer.Vocab().Added() {
		if a.Content == model.SpecialTokens["eos_token"] {
			e.stop = a.ID
		}
	}
	if e.stop < 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "model"}, "the model names no eos_token among its added tokens").WithFix("add eos_token to tokenizer_config.json")
	}
	for k, text := range model.SpecialTokens {
		e.kwargs[k] = chat.String(text)
	}
	stock, err := e.ids(e.stock, false)
	if err != nil {
		return nil, err
	}
	e.baseLen = len(stock)
	empty := []rollout.Message{{Role: rollout.RoleUser}}
	bare, err := e.ids(empty, false)
	if err != nil {
		return nil, err
	}
	open, err := e.ids(empty, true)
	if err != nil {
		return nil, err
	}
	e.opener = open[min(len(bare), len(open)):]
	return e, nil
}

// ids renders and encodes messages. Control tokens in their text become control tokens.
func (e *encoder) ids(messages []rollout.Message, generationPrompt bool) ([]rollout.TokenID, error) {
	list := make([]chat.Value, len(messages))
	for i, m := range messages {
		list[i] = chat.Object(chat.Member{Key: "role", Value: chat.String(string(m.Role))}, chat.Member{Key: "content", Value: chat.String(m.Content)})
	}
	c, err := chat.NewConversation(chat.List(list...), chat.Null(), chat.Null(), chat.ConversationOptions{})
	if err != nil {
		return nil, err
	}
	text, err := e.model.Template.Render(e.ctx, c, chat.Input{AddGenerationPrompt: generationPrompt, Kwargs: e.kwargs})
	if err != nil {
		return nil, err
	}
	var enc engine.Encoding
	err = e.model.Tokenizer.Encode(&enc, text.Text, engine.EncodeOptions{})
	return enc.IDs, err
}

// response appends one message, encoded like the reference.
func (e *encoder) response(ids *[]rollout.TokenID, mask *[]int8, m *rollout.Message) error {
	all, err := e.ids(append(slices.Clip(e.stock), *m), false)
	if err != nil {
		return err
	}
	own := all[min(e.baseLen, len(all)):]
	n := len(*mask)
	*ids = append(*ids, own...)
	*mask = append(*mask, make([]int8, len(own))...)
	if m.Role != rollout.RoleAssistant {
		return nil
	}
	if len(own) < len(e.opener) || !slices.Equal(own[:len(e.opener)], e.opener) {
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "a reply does not begin with the generation prompt, which the reference asserts").
			WithFix("use a template whose assistant turns do, or the default encoding")
	}
	end := len(own)
	for k := end - 1; k >= len(e.opener); k-- {
		if own[k] == e.stop {
			end = k + 1
			break
		}
	}
	for k := len(e.opener); k < end; k++ {
		(*mask)[n+k] = 1
	}
	return nil
}

// sample joins prompt and response and cuts the response to the budget, to no less than
// one token.
func (e *encoder) sample(prompt, response []rollout.TokenID, mask []int8) (Sample, bool) {
	n := len(response)
	if e.max > 0 && len(prompt)+n > e.max {
		n = min(n, max(1, e.max-len(prompt)))
	}
	return Sample{Tokens: slices.Concat(prompt, response[:n]), LossMask: slices.Clone(mask[:n]), ResponseLength: n, Status: rollout.StatusCompleted}, n < len(response)
}

func (e *encoder) step(r *rollout.Rollout, i int, t *rollout.Turn) (Step, error) {
	where := rollout.Where{Rollout: r.ID, Turn: rollout.At(i)}
	if t.Message < fixed || t.Message >= len(r.Messages) {
		return Step{}, rollout.Errorf(rollout.KindInput, where, "the turn's reply is message %d of %d, expected one after the first %d", t.Message, len(r.Messages), fixed)
	}
	m := &r.Messages[t.Message]
	s := Step{Index: i, Text: m.Content, Shown: t.Message}
	shown := r.Messages[:t.Message]
	if t.Context.Parts != nil {
		shown = nil
		for _, p := range t.Context.Parts {
			switch {
			case p.Message != nil:
				shown = append(shown, *p.Message)
			case p.From < 0 || p.From > p.To || p.To > len(r.Messages):
				return Step{}, rollout.Errorf(rollout.KindInput, where, "the context names messages [%d, %d) of %d", p.From, p.To, len(r.Messages))
			default:
				shown = append(shown, r.Messages[p.From:p.To]...)
			}
		}
		s.Shown = len(shown)
		for _, m := range shown {
			s.Context = append(s.Context, Message{m.Role, m.Content})
		}
	}
	prompt, err := e.ids(shown, true)
	if err != nil {
		return Step{}, err
	}
	var ids []rollout.TokenID
	var mask []int8
	if err := e.response(&ids, &mask, m); err != nil {
		return Step{}, err
	}
	s.Sample, _ = e.sample(prompt, ids, mask)
	return s, nil
}
