package traj

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// givenSystem puts Options.System before the messages of a rollout that has no
// system prompt. What a recorded call was sent is in its record.
func (j *fileReader) givenSystem(r *rollout.Rollout) error {
	text := j.r.opt.System
	if text == "" || j.ofCall() || len(r.Messages) == 0 {
		return nil
	}
	for i := range r.Messages {
		if role := r.Messages[i].Role; role == rollout.RoleSystem || role == rollout.RoleDeveloper {
			return nil
		}
	}
	if strings.Contains(text, policyMark) {
		return j.fail(0, "Options.System", "the system prompt names %s, and the record holds no policy", policyMark)
	}
	r.Messages = slices.Insert(slices.Clip(r.Messages), 0, rollout.Message{Role: rollout.RoleSystem, Content: text})
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.Message >= 0 {
			t.Message++
		}
		if t.Context.Parts == nil {
			continue
		}
		parts := []rollout.ContextPart{{From: 0, To: 1}}
		for _, p := range t.Context.Parts {
			p.From, p.To = p.From+1, p.To+1
			if n := len(parts) - 1; n == 0 && p.Message == nil && p.From == 1 {
				parts[0].To = p.To
				continue
			}
			parts = append(parts, p)
		}
		t.Context.Parts = parts
	}
	for i := range r.Notes {
		if k, ok := r.Notes[i].Message.Get(); ok {
			r.Notes[i].Message = rollout.At(k + 1)
		}
	}
	r.Notes = append(r.Notes, rollout.Note{Code: "system_given", Text: "the record has no system prompt; the one given was put before its messages"})
	return nil
}
