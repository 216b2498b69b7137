package thread

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Steps are the replies of one message: the client writes what a model said in several
// calls into one.
type Steps struct {
	t       *Thread
	Message rollout.Message
	results []rollout.Message
	said    bool
	Cut     string // why the reply is not whole
	Lost    string // why what the replies after it saw is not known
}

func NewSteps(t *Thread) *Steps {
	return &Steps{t: t, Message: rollout.Message{Role: rollout.RoleAssistant}}
}

// Flush ends a reply: it, and the results of its calls.
func (s *Steps) Flush(end string) {
	if s.said {
		s.t.End(end)
		if s.Cut != "" {
			s.t.Cut[len(s.t.Rollout.Messages)] = s.Cut
		}
		s.t.Say(s.Message)
		for _, r := range s.results {
			s.t.Say(r)
		}
	}
	if s.Lost != "" {
		s.t.Lose(s.Lost)
	}
	*s = *NewSteps(s.t)
}

// Write adds text, which begins a new reply where calls were answered before it.
func (s *Steps) Write(text string, reasoning bool) {
	if len(s.results) > 0 {
		s.Flush("")
	}
	s.said = true
	if reasoning {
		s.Message.Reasoning += text
	} else {
		s.Message.Content += text
	}
}

// Call adds a call, and its result where there is one.
func (s *Steps) Call(c rollout.ToolCall, result format.Value) {
	s.said = true
	s.Message.ToolCalls = append(s.Message.ToolCalls, c)
	if !result.IsNull() {
		s.results = append(s.results, rollout.Message{Role: rollout.RoleTool, ToolCallID: c.ID, Content: format.PlainText(result)})
	}
}
