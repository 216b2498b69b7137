package clients

import (
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// goose reads the sessions of goose: a header line and one message per line, or the output
// of goose session export.
func goose() []format.Importer {
	d := thread.Dialect{Name: "goose", Is: isGoose, Add: addGoose, Start: gooseStart, List: "conversation", Session: true}
	all := d.Importers()
	all[1].Match = func(v format.Value, _ *format.File) bool {
		return isGoose(v) || v.Get("working_dir").Kind() == jsonscan.String && v.Get("message_count").Kind() == jsonscan.Number
	}
	return all
}

// isGoose reports whether v is a message: created is a number, and contents have types.
func isGoose(v format.Value) bool {
	if v.Get("role").Kind() != jsonscan.String || v.Get("created").Kind() != jsonscan.Number {
		return false
	}
	c := v.Get("content").First()
	return c.Get("type").Kind() == jsonscan.String
}

// gooseStart notes sessions of versions that sent the time, and what their extensions know,
// and stored none of it. Later versions store it as messages.
func gooseStart(t *thread.Thread, v format.Value) {
	if !slices.ContainsFunc(format.Elements(v.Get("conversation")), func(m format.Value) bool { return m.Path("metadata", "turnContext").True() }) {
		t.In.Note("notes_not_recorded", 0, "no message holds the time and the notes that goose sends with each request, as versions since August 2026 have")
	}
}

func addGoose(t *thread.Thread, v format.Value) {
	if v.Get("working_dir").Kind() == jsonscan.String { // the header line
		t.Rollout.ID = format.FirstID(v, "id")
		return
	}
	role := t.Speaker(v.Get("role").Word())
	if visible, said := v.Path("metadata", "agentVisible").Bool(); said && !visible {
		t.Lose("messages were taken out of what the agent sees")
	}
	if role == rollout.RoleUser {
		gooseTrims(t)
	}
	m := rollout.Message{Role: role}
	said := false
	var texts []string
	for _, c := range t.Items(v, "content", "") {
		if gooseHides(c) {
			continue
		}
		switch kind := c.Get("type").Word(); kind {
		case "text":
			texts, said = append(texts, t.Words(c, "text", "/content")), true
		case "thinking":
			m.Reasoning += t.Words(c, "thinking", "/content")
		case "redactedThinking":
			t.In.NoteRedacted(len(t.Rollout.Messages))
		case "toolRequest", "frontendToolRequest":
			x := c.Path("toolCall", "value")
			if x.Kind() != jsonscan.Object {
				t.In.Wrong(t.In.Fail(t.At(), "/content/toolCall", "the call could not be read by goose (%s), so that what was sampled is not recorded", c.Path("toolCall", "error").String()))
			}
			m.ToolCalls = append(m.ToolCalls, t.BareCall(c.Get("id").String(), x.Get("name").Word(), x.Get("arguments")))
		case "toolResponse":
			gooseResult(t, c, v.Get("metadata"))
		case "toolConfirmationRequest", "actionRequired", "systemNotification": // shown to the user
		case "summarizationRequested", "contextLengthExceeded", "conversationCompacted":
			t.Lose("the session was compacted")
		default:
			t.Unknown("/content", kind)
		}
	}
	if t.In.Broken() || !said && m.ToolCalls == nil && m.Reasoning == "" {
		return
	}
	m.Content = strings.Join(texts, "\n")
	goesOn := role == rollout.RoleAssistant && gooseGoesOn(t, m, v)
	if !goesOn && t.Unanswered() {
		t.Lose("a call without a result was left out of what was sent")
	}
	if v.Path("metadata", "outputTokenLimitReached").True() {
		t.End("length")
	}
	if !goesOn {
		t.Say(m)
	}
}

// gooseTrims takes the space from the end of the last reply, as goose does when it sends it
// again.
func gooseTrims(t *thread.Thread) {
	if at := len(t.Rollout.Messages) - 1; at >= 0 && t.Rollout.Messages[at].Role == rollout.RoleAssistant {
		m := &t.Rollout.Messages[at]
		if s := strings.TrimRightFunc(m.Content, unicode.IsSpace); s != m.Content {
			m.Content, t.Cut[at] = s, "it ended with space, which later requests do not hold"
		}
	}
}

// gooseHides reports whether content is for the user alone.
func gooseHides(c format.Value) bool {
	audience := c.Path("annotations", "audience")
	return audience.Len() > 0 && !strings.Contains(string(audience.Raw()), "assistant")
}

// gooseGoesOn adds to the last reply what goose, since it streams, writes as messages of
// their own: thoughts, text, and each call with its result after it. It reports whether it
// did.
func gooseGoesOn(t *thread.Thread, m rollout.Message, v format.Value) bool {
	at := len(t.Rollout.Messages) - 1
	for at >= 0 && t.Rollout.Messages[at].Role == rollout.RoleTool {
		at--
	}
	if at < 0 || t.Rollout.Messages[at].Role != rollout.RoleAssistant {
		return false
	}
	last := &t.Rollout.Messages[at]
	if at < len(t.Rollout.Messages)-1 {
		if m.ToolCalls == nil || m.Content != "" || m.Reasoning != last.Reasoning || !strings.HasPrefix(v.Get("id").String(), "msg_") {
			return false
		}
		if m.Reasoning == "" { // it may be a reply
			why := "whether one reply or several made these calls is not recorded"
			t.Lose(why)
			t.Cut[at], t.Cut[len(t.Rollout.Messages)] = why, why
			return false
		}
	}
	if m.Reasoning != last.Reasoning { // which calls repeat
		last.Reasoning += m.Reasoning
	}
	last.Content += m.Content
	last.ToolCalls = append(last.ToolCalls, m.ToolCalls...)
	return true
}

func gooseResult(t *thread.Thread, c, metadata format.Value) {
	v, id := c.Path("toolResult", "value"), c.Get("id").String()
	if why, ok := c.Path("toolResult", "error").Text(); ok {
		t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: why})
		t.Lose("an error of a tool was shown in words that are not recorded")
		return
	}
	if list := v.Get("content"); list.Kind() == jsonscan.Array {
		v = list
	}
	t.Need(v, jsonscan.Array, "/content/toolResult/value", "a list of contents")
	var texts []string
	for _, x := range v.Items() {
		if !x.Get("type").Is("text") {
			t.Unknown("/content/toolResult", x.Get("type").String())
		}
		if gooseHides(x) {
			continue
		}
		texts = append(texts, t.Words(x, "text", "/content/toolResult"))
	}
	if strings.Join(texts, "") == "" && !metadata.IsNull() { // not in the first versions
		texts = append(texts, "(empty result)")
	}
	t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: strings.Join(texts, " ")})
}
