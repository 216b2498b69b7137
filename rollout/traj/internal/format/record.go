package format

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// UnlinkResults removes the call id from tool results that answer no call of the record:
// NeMo-Gym invents an id for what a terminal showed after a reply without a command, and an
// excerpt of events may begin between a call and its result. The id stays in Extra.
func (in *File) UnlinkResults(r *rollout.Rollout) {
	calls := map[string]bool{"": true}
	for i := range r.Messages {
		m := &r.Messages[i]
		for _, c := range m.ToolCalls {
			calls[c.ID] = true
		}
		if m.Role != rollout.RoleTool || calls[m.ToolCallID] {
			continue
		}
		in.Note("result_without_call", rollout.At(i), "the result answers the call %q, which the record does not hold; it is shown without one", m.ToolCallID)
		KeepText(&m.Extra, "call_id", m.ToolCallID)
		m.ToolCallID = ""
	}
}

// NoteRedacted notes reasoning that was removed from the record.
func (in *File) NoteRedacted(message int) {
	in.Note("redacted_thinking", rollout.At(message), "the model thought here and the text is not readable")
}

// pageKeys are the paging keys of lists in API answers.
var pageKeys = []string{"object", "has_more", "hasMore", "first_id", "last_id", "next", "previous", "next_cursor", "nextCursor", "cursor", "cursors", "page", "limit", "offset",
	"total", "totalItems", "total_count", "totalPages", "count", "url", "meta", "pagination"}

// Unpaged yields the members of an object except paging members: a number, a word, or a
// small object under one of pageKeys.
func Unpaged(v Value) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, x := range v.Members() {
			if !ofPage(key, x) && !yield(key, x) {
				return
			}
		}
	}
}

func ofPage(key string, v Value) bool {
	for _, x := range v.Members() {
		if x.Len() > 0 && x.Kind() != jsonscan.String {
			return false
		}
	}
	return slices.Contains(pageKeys, key) && v.Kind() != jsonscan.Array && v.Size() < 1<<10
}

// IsImage reports whether a part is an image under any of its type names. Images are kept
// in Parts and do not count as text.
func IsImage(p rollout.Part) bool {
	return p.Type == "image" || p.Type == "image_url" || p.Type == "input_image"
}

// SystemHidden is the code of the note that the system prompt is not recorded, which one
// that is given takes away.
const SystemHidden = "system_not_recorded"

// NoteHidden notes what a session does not record: its system prompt, unless one is among
// the messages, and its tools.
func (in *File) NoteHidden(r *rollout.Rollout) {
	if !slices.ContainsFunc(r.Messages, func(m rollout.Message) bool { return m.Role == rollout.RoleSystem }) {
		in.Note(SystemHidden, 0, "no session holds the system prompt; give it where it is known")
	}
	in.Note("tools_not_recorded", 0, "no session holds the definitions of tools")
}

// NoteParts notes which message parts are not text: they are kept, not rendered.
func (in *File) NoteParts(r *rollout.Rollout) {
	for i := range r.Messages {
		images := 0
		var others []string
		for _, p := range r.Messages[i].Parts {
			switch {
			case IsImage(p):
				images++
			case !p.IsText():
				others = append(others, strconv.Quote(p.Type))
			}
		}
		if images > 0 {
			in.Note("images", rollout.At(i), "%d images, kept but not text", images)
		}
		if others != nil {
			in.Note("not_text", rollout.At(i), "parts of type %s, kept but not text", strings.Join(others, ", "))
		}
	}
}

// MetadataBytes is the maximum size of one metadata value; longer values are not kept.
const MetadataBytes = 4 << 10

// Leftover keeps the small values of v that no field took as metadata and notes larger
// ones. v becomes the Record, for files or records with several rollouts.
func (in *File) Leftover(r *rollout.Rollout, v Value, taken ...string) {
	in.Record = v
	for key, x := range v.Members() {
		if x.IsNull() || slices.Contains(taken, key) {
			continue
		}
		if n := x.Size(); n > MetadataBytes {
			in.Note("not_kept", 0, "key %q of %d bytes was left in the dump", key, n)
			continue
		}
		Keep(&r.Metadata, key, x)
	}
}

// Reward returns a recorded number; nil for anything else, with a note unless null.
func (in *File) Reward(v Value) *float64 {
	f := Number(v)
	if f == nil && !v.IsNull() {
		in.Note("outcome_unreadable", 0, "the reward %.40s is not a number; none was taken", v.Raw())
	}
	return f
}

// Resolved returns a recorded boolean, 0 or 1; nil for anything else, with a note unless
// null.
func (in *File) Resolved(v Value) *bool {
	b := Boolean(v)
	if f := Number(v); f != nil && (*f == 0 || *f == 1) {
		yes := *f == 1
		b = &yes
	}
	if b == nil && !v.IsNull() {
		in.Note("outcome_unreadable", 0, "%.40s does not say whether the task is resolved; nothing was taken", v.Raw())
	}
	return b
}

// Outcome returns a record's outcome under the common keys.
func (in *File) Outcome(v Value) rollout.Outcome {
	return rollout.Outcome{Reward: in.Reward(v.Get("reward")), Resolved: in.Resolved(v.Get("resolved"))}
}

// TemplateKwargs copies the chat-template variables of a call. Engines read them from
// chat_template_kwargs of the request; clients pass them in a body for parameters that the
// API lacks. The native format's key, template_kwargs, is read as well; a record in which
// the two differ is refused.
func (in *File) TemplateKwargs(r *rollout.Rollout, params Value) {
	const key = "chat_template_kwargs"
	for _, from := range []Value{params, params.Get("extra_body"), params.Get("litellm_extra_body")} {
		in.variables(r, from, key)
	}
	in.variables(r, params, "template_kwargs")
}

// variables adds the chat-template variables under key that r does not have yet.
func (in *File) variables(r *rollout.Rollout, from Value, key string) {
	v := in.Inner(from.Get(key), "/"+key)
	in.ObjectOrNull(v, 0, "/"+key)
	for name, x := range v.Members() {
		if _, there := r.TemplateKwargs[name]; !there {
			Keep(&r.TemplateKwargs, name, x)
		}
	}
}

// ContinuesPrefill marks a reply that continues the last message of the request: as
// separate messages they cannot be rendered to what the model saw.
func (in *File) ContinuesPrefill(t *rollout.Turn, yes bool) {
	if yes && !t.Prompt.Captured() {
		in.Note("continues_prefill", rollout.At(t.Message), "the reply goes on from the text that the request put in the assistant's mouth")
		t.Context.Unknown = true
	}
}

// Silent reports whether a message is empty: no text, parts, calls or reasoning.
func Silent(m *rollout.Message) bool {
	return m.Content == "" && len(m.Parts) == 0 && len(m.ToolCalls) == 0 && m.Reasoning == ""
}

// EmptyReplies notes sampled replies that are empty: only their stop token would be
// trained.
func (in *File) EmptyReplies(r *rollout.Rollout) {
	n, first := 0, 0
	for i := range r.Turns {
		if Silent(&r.Messages[r.Turns[i].Message]) && r.Turns[i].Output == nil {
			if n++; n == 1 {
				first = r.Turns[i].Message
			}
		}
	}
	if n > 0 {
		in.Note("empty_reply", rollout.At(first), "%d replies are recorded as empty: what is trained of them is their end", n)
	}
}

// Graded returns the outcome in a report of OpenHands' evaluation, unknown if there is
// none. A failed grading says unresolved, which is not known.
func Graded(report Value) (resolved *bool, verdict rollout.Verdict) {
	yes := func(key string) bool { return report.Get(key).True() }
	resolved = Boolean(report.Get("resolved"))
	switch {
	case resolved == nil:
		return nil, rollout.VerdictUnknown
	case *resolved:
		return resolved, rollout.VerdictResolved
	case yes("error_eval"):
		return nil, rollout.VerdictInfraError
	case yes("empty_generation"):
		return resolved, rollout.VerdictNoPatch
	case yes("failed_apply_patch"):
		return resolved, rollout.VerdictApplyFailed
	case yes("test_timeout"):
		return resolved, rollout.VerdictTestsTimeout
	}
	return resolved, rollout.VerdictUnresolved
}
