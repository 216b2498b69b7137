package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
	tokenengine "github.com/turnpack/turnpack/tokenize/engine"
)

// fault is a common fault of training pipelines.
type fault string

// Two of the faults, by-position and infra-minus-one, are in loop.go: they only send the
// service another request.
const (
	retokenised   fault = "retokenised"     // replies are stored as text and encoded again
	stopMasked    fault = "stop-masked"     // the stop token of a reply is not trained
	byPosition    fault = "by-position"     // groups are cut from the rollouts in the order they arrive
	infraMinusOne fault = "infra-minus-one" // a lost tool counts as a wrong answer
	perMessage    fault = "per-message"     // each message is rendered alone and the pieces are joined
)

// recomputes reports whether the ids differ from the sampled ones, so that the recorded
// log probabilities do not match. Trainers then use their own as the old ones.
func (f fault) recomputes() bool { return f == retokenised || f == perMessage }

// trust counts trained tokens, and those that equal the engine's tokens in their own
// context.
type trust struct{ sampled, trained, exact int64 }

func (t *trust) add(o trust) {
	t.sampled, t.trained, t.exact = t.sampled+o.sampled, t.trained+o.trained, t.exact+o.exact
}

func (t trust) share() float64 { return float64(t.exact) / float64(max(1, t.trained)) }

// spoiler is a sink that passes rows on, unchanged or with a fault.
type spoiler struct {
	ctx      context.Context
	fault    fault
	model    *tokenize.Model
	rollouts map[string]*rollout.Rollout
	w        *export.Writer
	open     []rollout.Sample // rows of an incomplete rollout
	trust    trust
}

// Write receives a row of the pipeline.
func (p *spoiler) Write(s rollout.Sample) error {
	p.open = append(p.open, s)
	if !s.IsLast {
		return nil
	}
	r, rows := p.rollouts[s.Rollout], p.open
	p.open = nil
	made, err := p.spoil(r, rows)
	if err != nil {
		return err
	}
	for i := range made {
		if err := errors.Join(p.count(r, &made[i]), p.w.Write(made[i])); err != nil {
			return err
		}
	}
	for _, t := range r.Turns {
		p.trust.sampled += int64(len(t.Output))
	}
	return nil
}

func (p *spoiler) spoil(r *rollout.Rollout, rows []rollout.Sample) ([]rollout.Sample, error) {
	switch p.fault {
	case stopMasked:
		for i := range rows {
			s := &rows[i]
			s.Weight, s.Credit, s.Logprob = slices.Clone(s.Weight), slices.Clone(s.Credit), slices.Clone(s.Logprob)
			for t, f := range s.Flags {
				if f&rollout.FlagStop != 0 {
					s.Weight[t], s.Credit[t], s.Logprob[t] = 0, 0, 0
				}
			}
		}
	case retokenised:
		for i := range rows {
			segments, err := p.reencodeReplies(&rows[i])
			if err != nil {
				return nil, err
			}
			rows[i] = withSegments(r, rows[i], segments)
		}
	case perMessage:
		segments, err := p.renderAlone(r)
		if err != nil {
			return nil, err
		}
		rows = []rollout.Sample{withSegments(r, rows[len(rows)-1], segments)} // one row per rollout
	}
	return rollout.FinishRows(rows), nil
}

// segment is a run of tokens of one turn, or of context.
type segment struct {
	ids  []rollout.TokenID
	turn int32 // -1 = context
}

// reencodeReplies decodes each reply of a row to text and encodes the text.
func (p *spoiler) reencodeReplies(s *rollout.Sample) (out []segment, err error) {
	for from := 0; from < s.Len(); {
		to := from
		for to < s.Len() && s.Turn[to] == s.Turn[from] {
			to++
		}
		x := segment{slices.Clone(s.IDs[from:to]), s.Turn[from]}
		if x.turn >= 0 {
			text, err := p.model.Tokenizer.Decode(x.ids)
			if err != nil {
				return nil, err
			}
			if x.ids, err = encode(p.model, text); err != nil {
				return nil, err
			}
		}
		out = append(out, x)
		from = to
	}
	return out, nil
}

// renderAlone renders each message of a rollout alone and joins the pieces into one
// conversation, whatever the model saw in each turn.
func (p *spoiler) renderAlone(r *rollout.Rollout) (out []segment, err error) {
	for turn, at := int32(0), 0; at < len(r.Messages); at++ {
		text, err := p.renderText(r.Messages[at])
		if err != nil {
			return nil, err
		}
		ids, err := encode(p.model, text)
		if err != nil {
			return nil, err
		}
		if r.Messages[at].Role != rollout.RoleAssistant {
			out = append(out, segment{ids, -1})
			continue
		}
		out = append(out, segment{ids[:1], -1}, segment{ids[1:], turn}) // the role token is context
		turn++
	}
	return out, nil
}

func (p *spoiler) renderText(m rollout.Message) (string, error) {
	x := map[string]any{"role": m.Role, "content": m.Content}
	var calls []any
	for _, c := range m.ToolCalls {
		calls = append(calls, map[string]any{"type": "function", "function": map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Arguments)}})
	}
	if calls != nil {
		x["tool_calls"] = calls
	}
	text, err := json.Marshal([]any{x})
	if err != nil {
		return "", err
	}
	v, err := chat.ParseJSON(text)
	if err != nil {
		return "", err
	}
	c, err := chat.NewConversation(v, chat.Null(), chat.Null(), chat.ConversationOptions{})
	if err != nil {
		return "", err
	}
	res, err := p.model.Template.Render(p.ctx, c, chat.Input{})
	if err != nil {
		return "", err
	}
	return string(res.Text), nil
}

// withSegments returns s with other tokens. It assigns recorded log probabilities to the tokens
// of their turn by position, as a pipeline does that zips the two lists unchecked.
func withSegments(r *rollout.Rollout, s rollout.Sample, segments []segment) rollout.Sample {
	q := rollout.Sequence{Identity: s.Identity}
	var version int32 = -1
	for _, v := range s.Version {
		version = max(version, v)
	}
	var credit float32
	if s.Advantage != nil {
		credit = float32(*s.Advantage)
	}
	for _, x := range segments {
		for i, id := range x.ids {
			q.IDs, q.Turn, q.Source = append(q.IDs, id), append(q.Turn, x.turn), append(q.Source, -1)
			if x.turn < 0 || int(x.turn) >= len(r.Turns) {
				q.Flags, q.Logprob, q.Version, q.Weight, q.Credit = append(q.Flags, 0), append(q.Logprob, 0), append(q.Version, -1), append(q.Weight, 0), append(q.Credit, 0)
				continue
			}
			var logprob float32
			if lp := r.Turns[x.turn].Logprobs; i < len(lp) {
				logprob = lp[i]
			}
			q.Flags, q.Logprob, q.Version, q.Weight, q.Credit = append(q.Flags, rollout.FlagSampled), append(q.Logprob, logprob), append(q.Version, version), append(q.Weight, 1), append(q.Credit, credit)
		}
	}
	s.Sequence, s.PromptLen = q, 0
	return s
}

// count counts the trained tokens, and those that were sampled after the same prompt.
func (p *spoiler) count(r *rollout.Rollout, s *rollout.Sample) error {
	for from := 0; from < s.Len(); {
		to, turn := from, s.Turn[from]
		for to < s.Len() && s.Turn[to] == turn {
			to++
		}
		var trained int64
		for t := from; t < to; t++ {
			if s.Weight[t] > 0 {
				trained++
			}
		}
		if p.trust.trained += trained; trained > 0 {
			prompt, err := r.PromptTokens(nil, int(turn))
			if err != nil {
				return err
			}
			if out := r.Turns[turn].Output; slices.Equal(s.IDs[:from], prompt) && to-from <= len(out) && slices.Equal(s.IDs[from:to], out[:to-from]) {
				p.trust.exact += trained
			}
		}
		from = to
	}
	return nil
}

func encode(m *tokenize.Model, text string) ([]rollout.TokenID, error) {
	var e tokenengine.Encoding
	err := m.Tokenizer.Encode(&e, text, tokenengine.EncodeOptions{})
	return e.IDs, err
}
