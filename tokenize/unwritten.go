package tokenize

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Unwritten is a part of a message that the template leaves out.
type Unwritten struct {
	Rollout string       `json:"rollout"`
	Message int          `json:"message"`
	Role    rollout.Role `json:"role"`
	Part    string       `json:"part"` // content, tool_calls, or arguments that are no JSON
}

// maxUnwritten is how many are listed; all are counted.
const maxUnwritten = 100

// unwritten reports what the contexts of r lack of messages that the policy did
// not sample. Nothing of them is trained, but neither did a model that was asked
// with this template see them.
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

// countOpenReasoning counts a reply from text that does not close the reasoning which the end of its
// prompt opens, save one that was cut: nobody sampled it there.
func (j *job) countOpenReasoning(t *rollout.Turn, asked, reply string, cut bool) {
	if t.Output != nil || cut || reply == "" {
		return
	}
	closing := func(text string) func([]int) bool {
		return func(at []int) bool { return text[at[0]+1] == '/' }
	}
	tags := completion.ThinkTag.FindAllStringIndex(asked, -1)
	if len(tags) == 0 || closing(asked)(tags[len(tags)-1]) {
		return
	}
	if !slices.ContainsFunc(completion.ThinkTag.FindAllStringIndex(reply, -1), closing(reply)) {
		j.report.OpenReasoning++
	}
}

// checkReplyWritten checks that what was written of message m holds what the policy sampled:
// without any tool call nobody knows that; what else is lost is counted.
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
