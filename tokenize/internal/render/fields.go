package render

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// rendered converts a result to a Rendering; index maps the numbers of its messages to those of the
// rollout.
func (x *Renderer) rendered(res *chat.Result, index []int32) Rendering {
	fields := x.Scratch.Fields
	x.Scratch.Fields = nil
	return Rendering{Text: res.Text, Fields: appendFields(fields, res, 0, index)}
}

// appendFields appends the fields of a result from byte at on. A known role counts as the
// template's text: <|user|> is the template's also if it writes <|{{ m.role }}|>.
func appendFields(out []Field, res *chat.Result, at int, index []int32) []Field {
	spans := res.FieldsFrom(at)
	for i := range spans.Len() {
		from, start, end := spans.At(i)
		message, part, call := int32(-1), partOther, uint16(0)
		if m := from.Message; m >= 0 {
			p := partOf(from)
			if p == PartRole {
				if knownRole(res.Text[start:end]) {
					continue
				}
				part = PartRole
			} else if message = index[m]; message >= 0 {
				part, call = p, from.Call
			}
		}
		n := len(out)
		if n > 0 {
			if last := &out[n-1]; last.End == start && last.Message == message && last.Part == part && last.Call == call {
				if last.End = end; part == PartRole && knownRole(res.Text[last.Start:end]) { // capitals are a separate field
					out = out[:n-1]
				}
				continue
			}
		}
		if n == cap(out) {
			out = slices.Grow(out, 1)
		}
		out = out[:n+1]
		// Field by field: copying a struct that was just assembled would wait for it.
		f := &out[n]
		f.Start, f.End, f.Message, f.Part, f.Call = start, end, message, part, call
	}
	return out
}

// knownRole reports whether role, in any case, is one with a meaning of its own.
func knownRole(role string) bool {
	switch rollout.Role(role) {
	case rollout.RoleSystem, rollout.RoleDeveloper, rollout.RoleUser, rollout.RoleAssistant, rollout.RoleTool:
		return true
	}
	lower := strings.ToLower(role)
	return lower != role && knownRole(lower)
}

// partOf returns the part of a message that a field belongs to. A role is recorded text, but part
// of the header wherever a template writes it, and written by the template itself in a generation
// prompt.
func partOf(f *chat.Field) Part {
	switch f.Part {
	case origin.PartContent:
		return PartContent
	case origin.PartReasoning:
		return PartReasoning
	case origin.PartToolCalls:
		return PartToolCall
	case origin.PartRole:
		if !f.IsKey {
			return PartRole
		}
	case origin.PartOther:
		if up := f.Parent; f.Key == "name" && !f.IsKey && up != nil && up.Parent != nil && up.Parent.Parent == nil {
			return PartName
		}
	}
	return partOther
}
