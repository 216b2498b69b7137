package tokenize

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
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
		if _, own := j.owner[int32(i)]; own || !j.render.shown[i] {
			continue
		}
		if strings.TrimSpace(m.Content) != "" && !j.pieces.written[i].has(partContent) {
			j.report.leaveOut(Unwritten{j.r.ID, i, m.Role, "content"})
		}
		if len(m.ToolCalls) > 0 && !j.pieces.written[i].has(partToolCall) {
			j.report.leaveOut(Unwritten{j.r.ID, i, m.Role, "tool_calls"})
		} else if _, err := j.render.shape.brokenArguments(m); err != nil {
			j.report.leaveOut(Unwritten{j.r.ID, i, m.Role, "arguments"})
		}
	}
}

// show notes that message m stood in what was rendered, if it is one of the rollout.
func (x *renderer) show(m int32) {
	if m >= 0 && int(m) < len(x.shown) {
		x.shown[m] = true
	}
}

// showPlain notes that the first n messages of the plain history did.
func (x *renderer) showPlain(n int) {
	for ; x.shownPlain < n; x.shownPlain++ {
		x.show(x.index[x.shownPlain])
	}
}

func (r *Report) leaveOut(list ...Unwritten) {
	r.Unwritten += len(list)
	r.UnwrittenAt = append(r.UnwrittenAt, list[:min(len(list), maxUnwritten-len(r.UnwrittenAt))]...)
}
