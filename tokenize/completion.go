package tokenize

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// completion fills c with the ids and the text that turn t sampled.
func (j *job) completion(t *rollout.Turn, c *tokens.Completion, prompt *render.Rendering, rendered bool, frames map[string]completion.Frame) error {
	var reply render.Rendering
	if t.Message >= 0 && rendered {
		m := &j.r.Messages[t.Message]
		var err error
		if reply, c.Stop, err = j.reply(t, m, prompt, frames); err != nil && t.Output == nil {
			return err
		}
		reply.Before = prompt
		if j.unstopped(t) {
			c.Stop = ""
		}
		if first, _, ok := reply.Extent(c.Message, render.PartScaffold, 0); ok {
			c.First = first
			if first == 0 { // the prompt may have written the beginning of the content
				c.First = -max(0, strings.Index(m.Content, reply.Text[:reply.Fields[0].End]))
			}
		}
	}
	c.Text = strings.Clone(reply.Text) // it may be part of a larger text
	if t.Output != nil {
		return j.capturedCompletion(t, c, &reply)
	}
	whole := reply
	whole.Text += c.Stop
	var err error
	if c.Cols, err = j.pieces.EncodeAll(&whole); err != nil {
		return err
	}
	c.Mark(j.model.IsStop)
	return c.CheckSampled(j.model.Tokenizer.Vocab(), j.model.IsStop)
}

// capturedCompletion takes the recorded ids and attributes them by their text.
func (j *job) capturedCompletion(t *rollout.Turn, c *tokens.Completion, reply *render.Rendering) error {
	if !hasModel(j.model) {
		c.IdsOnly(t.Output, j.model.IsStop)
		return nil
	}
	text, err := j.model.Tokenizer.Decode(t.Output)
	if err != nil {
		return err
	}
	if c.Stop != "" && j.endsWith(t.Output, c.Stop) {
		text = strings.TrimSuffix(text, c.Stop)
	} else {
		c.Stop = ""
	}
	if text != reply.Text {
		c.Text, c.First = text, 0
	}
	whole := *reply
	whole.Text += c.Stop
	c.Cols, _ = j.pieces.EncodeAll(&whole) // the ids are known anyway
	if !slices.Equal(c.Cols.IDs, t.Output) {
		c.Cols = tokens.Respelled(j.model.Tokenizer, j.added, c.Message, &c.Cols, t.Output)
	}
	c.Mark(j.model.IsStop)
	return nil
}

// endsWith reports whether ids end with the added token stop; other tokens could spell the same
// text.
func (j *job) endsWith(ids []rollout.TokenID, stop string) bool {
	if len(ids) == 0 {
		return false
	}
	a, ok := j.added.Find(ids[len(ids)-1])
	return ok && a.Content == stop
}

// reply returns the text that turn t sampled, and the text of its stop marker. The frame of a
// text-only reply depends on the generation prompt alone, so it is rendered once for each, with a
// text that no template rewrites.
func (j *job) reply(t *rollout.Turn, m *rollout.Message, prompt *render.Rendering, frames map[string]completion.Frame) (render.Rendering, string, error) {
	cut := j.unstopped(t)
	f, err := j.plainFrame(t, m, prompt, frames)
	if err != nil {
		return render.Rendering{}, "", err
	}
	if err := j.rule.Opening().CheckLead(&f); err != nil && t.Output == nil {
		return render.Rendering{}, "", err
	}
	var out render.Rendering
	plain := completion.PlainText(m)
	switch {
	case plain && cut && m.Content == "":
		return out, "", nil
	case plain:
		if cut {
			f.Tail = render.Rendering{}
		}
		out = f.Wrap(completion.OpenerTrimmed(prompt.Text, m.Content), int32(t.Message))
	default:
		with, turn, err := j.replies.Answered(t, completion.AsSampled(m), prompt)
		if err != nil {
			return out, "", err
		}
		out, f = j.rule.SampledText(m, int32(t.Message), prompt, &with, turn, cut)
	}
	if t.Output != nil {
		return out, f.Stop, nil
	}
	j.countOpenReasoning(prompt, &out, cut)
	if !plain {
		if err := j.checkReplyWritten(m, completion.WrittenOf(&out, int32(t.Message), 0, len(out.Text))); err != nil {
			return out, f.Stop, err
		}
	}
	return out, f.Stop, j.rule.CheckReply(&out, int32(t.Message), &f, prompt)
}

// plainFrame returns the frame of a text-only reply in the place of m.
func (j *job) plainFrame(t *rollout.Turn, m *rollout.Message, prompt *render.Rendering, frames map[string]completion.Frame) (completion.Frame, error) {
	asked := prompt.Tail()
	own := j.render.Shape.ReadsExtra(m)
	if f, ok := frames[asked]; ok && !own {
		return f, nil
	}
	probe := rollout.Message{Role: m.Role, Content: "Reply.", Extra: m.Extra}
	with, turn, err := j.replies.Answered(t, &probe, prompt)
	if err != nil {
		return completion.Frame{}, err
	}
	_, f := j.rule.SampledText(&probe, int32(t.Message), prompt, &with, turn, false)
	if !own && !f.Recorded() {
		frames[strings.Clone(asked)] = f // copied, since the prompt's memory is reused
	}
	return f, nil
}

// Unwritten is a part of a message that the template leaves out.
type Unwritten struct {
	Rollout string       `json:"rollout"`
	Message int          `json:"message"`
	Role    rollout.Role `json:"role"`
	Part    string       `json:"part"` // "content", "tool_calls", or "arguments" if they are not JSON
}

// maxUnwritten is how many parts are listed; all are counted.
const maxUnwritten = 100

// unwritten reports parts of messages that the contexts of r lack and that the policy did not
// sample. They are not trained; a model prompted with this template did not see them either.
func (j *job) unwritten() {
	if j.render == nil {
		return
	}
	for i := range j.r.Messages {
		m := &j.r.Messages[i]
		if _, own := j.owner[int32(i)]; own || !j.render.Shown[i] {
			continue
		}
		if strings.TrimSpace(m.Content) != "" && !j.pieces.Written[i].Has(render.PartContent) {
			j.report.reportUnwritten(Unwritten{j.r.ID, i, m.Role, "content"})
		}
		if len(m.ToolCalls) > 0 && !j.pieces.Written[i].Has(render.PartToolCall) {
			j.report.reportUnwritten(Unwritten{j.r.ID, i, m.Role, "tool_calls"})
		} else if _, err := j.render.Shape.BrokenArguments(m); err != nil {
			j.report.reportUnwritten(Unwritten{j.r.ID, i, m.Role, "arguments"})
		}
	}
}

func (r *Report) reportUnwritten(list ...Unwritten) {
	r.Unwritten += len(list)
	r.UnwrittenAt = append(r.UnwrittenAt, list[:min(len(list), maxUnwritten-len(r.UnwrittenAt))]...)
}

// countOpenReasoning counts a reply from text that does not close the reasoning which its prompt
// opens, unless the reply was truncated before it could.
func (j *job) countOpenReasoning(prompt, reply *render.Rendering, cut bool) {
	if !cut && reply.Text != "" && completion.LeavesReasoningOpen(prompt.Tail(), reply.Text) {
		j.report.OpenReasoning++
	}
}

// checkReplyWritten checks that the rendered message w holds what the policy sampled in m. It is an
// error if all tool calls are missing, since the sampled text is then unknown; other losses are
// counted.
func (j *job) checkReplyWritten(m *rollout.Message, w completion.Written) error {
	if k, err := j.render.Shape.BrokenArguments(m); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tool_calls"}, "the arguments of call %d are not JSON (%w), and the chat template writes objects only, so what the model sampled is not known", k, err).
			WithFix("record the engine's token ids, or leave the rollout out")
	}
	calls := w.Calls(len(m.ToolCalls))
	if len(m.ToolCalls) > 0 && calls == 0 {
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template does not write the message's tool calls, so what the model sampled is not known").
			WithFix("use a template with tools, or record the engine's token ids")
	}
	if calls < len(m.ToolCalls) {
		j.report.LostCalls++
	}
	if w.Lacks(render.PartReasoning, m.Reasoning) {
		j.report.LostReasoning++
	}
	if w.Lacks(render.PartContent, m.Content) {
		j.report.LostContent++
	}
	return nil
}
