package traj

import "github.com/turnpack/turnpack/rollout"

// orphans takes the id from tool results that answer no call of the record, for
// recorders that write such: NeMo-Gym invents an id for what a terminal showed
// after a reply without a command, and an excerpt of events may begin between a
// call and its result. The id stays in Extra.
func (j *fileReader) orphans(r *rollout.Rollout) {
	calls := map[string]bool{"": true}
	for i := range r.Messages {
		m := &r.Messages[i]
		for _, c := range m.ToolCalls {
			calls[c.ID] = true
		}
		if m.Role != rollout.RoleTool || calls[m.ToolCallID] {
			continue
		}
		j.note("result_without_call", rollout.At(i), "the result answers the call %q, which the record does not hold; it is shown without one", m.ToolCallID)
		keepText(&m.Extra, "call_id", m.ToolCallID)
		m.ToolCallID = ""
	}
}
