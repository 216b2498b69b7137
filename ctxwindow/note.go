package ctxwindow

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout"
)

func omissionNote(omitted int) rollout.Message {
	turns := "turns"
	if omitted == 1 {
		turns = "turn"
	}
	return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("[%d earlier %s left out to fit the context window]", omitted, turns)}
}

func noteOr(note func(int) rollout.Message) func(int) rollout.Message {
	if note == nil {
		return omissionNote
	}
	return note
}

// join appends a note in a view to the message before it if both are from the user's side, which
// keeps the order of roles that the conversation has.
func (p *History) join(view []unit) []unit {
	for k, u := range view {
		if !u.note || k == 0 {
			continue
		}
		before := view[k-1]
		last := unit{from: before.to - 1, to: before.to, msg: before.msg}
		if !takesNote(p.message(last), u.msg) {
			return view
		}
		both := *p.message(last)
		both.Parts = nil
		if both.Content != "" {
			both.Content += "\n\n"
		}
		both.Content += u.msg.Content
		last.msg = &both
		out := append(make([]unit, 0, len(view)), view[:k-1]...)
		if before.msg == nil && before.from < last.from {
			out = append(out, unit{from: before.from, to: last.from})
		}
		return append(append(out, last), view[k+1:]...)
	}
	return view
}

// takesNote reports whether a note can be appended to message m.
func takesNote(m, note *rollout.Message) bool {
	return note.Role == rollout.RoleUser && note.Parts == nil && textOnly(m) && (m.Role == rollout.RoleUser || m.Role == rollout.RoleTool)
}
