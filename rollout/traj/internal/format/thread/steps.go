package thread

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Steps are the replies in one message, for clients that write the replies of several calls
// into one message.
type Steps struct {
	t       *Thread
	Message rollout.Message
	results []rollout.Message
	said    bool
	Cut     string // why the reply is incomplete
	Lost    string // why the contexts of later replies are unknown
}

func NewSteps(t *Thread) *Steps {
	return &Steps{t: t, Message: rollout.Message{Role: rollout.RoleAssistant}}
}

// Flush ends a reply: it adds the reply, then the results of its calls.
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

// Write adds text. After results of calls, the text starts a new reply.
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

// Call adds a call, and its result unless that is null.
func (s *Steps) Call(c rollout.ToolCall, result format.Value) {
	s.said = true
	s.Message.ToolCalls = append(s.Message.ToolCalls, c)
	if !result.IsNull() {
		s.results = append(s.results, rollout.Message{Role: rollout.RoleTool, ToolCallID: c.ID, Content: format.PlainText(result)})
	}
}
