package clients

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// copilotChat reads chats of Copilot in VS Code, from "Export Chat" or chatSessions. The
// model's texts are in the metadata of a request's result, in rounds of a reply and its
// calls; the response beside it is what the user was shown.
func copilotChat() format.Importer {
	return format.Importer{Name: "copilot-chat", Stateless: true, Match: func(v format.Value, _ *format.File) bool {
		return v.Get("requests").Kind() == jsonscan.Array && (v.Get("responderUsername").Kind() == jsonscan.String || v.Get("requesterUsername").Kind() == jsonscan.String)
	}, Read: readCopilotChat}
}

func readCopilotChat(in *format.File, v format.Value) error {
	t := thread.New(in)
	t.Rollout.ID = v.Get("sessionId").String()
	t.Rollout.Outcome = in.Outcome(v)
	for _, x := range v.Get("requests").Items() {
		if x.Get("isHidden").True() || x.Get("shouldBeRemovedOnSend").Kind() == jsonscan.Object {
			in.Note("rewound", t.At(), "a request that was taken back is left out")
			continue
		}
		copilotRequest(t, x)
	}
	in.Leftover(t.Rollout, v, "requests", "sessionId", "reward", "resolved")
	return t.Emit(true)
}

func copilotRequest(t *thread.Thread, x format.Value) {
	meta := x.Path("result", "metadata")
	said, exact := renderedText(meta.Get("renderedUserMessage"))
	if !exact {
		t.Lose("the request is not recorded as it was rendered")
		text := x.Get("message")
		if text.Kind() == jsonscan.Object {
			text = text.Get("text")
		}
		s, ok := text.Text()
		if !ok {
			t.In.Wrong(t.In.Want(text, t.At(), "/requests/message", "the text of a request"))
		}
		said = s
	}
	t.Text(rollout.RoleUser, said)
	stopped := x.Get("isCanceled").True()
	failed := x.Path("result", "errorDetails").Kind() == jsonscan.Object
	rounds := format.Elements(meta.Get("toolCallRounds"))
	for i, round := range rounds {
		copilotRound(t, round, meta.Get("toolCallResults"), (stopped || failed) && i == len(rounds)-1)
	}
	if len(rounds) == 0 {
		copilotShown(t, x.Get("response"), stopped || failed)
	}
	if failed {
		t.Lose("a request ended in an error")
	}
	if meta.Get("summary").Kind() == jsonscan.Object || meta.Get("summaries").Len() > 0 {
		t.Lose("the history was summarized")
	}
}

// copilotRound adds a reply with its calls, and their results.
func copilotRound(t *thread.Thread, round, results format.Value, cut bool) {
	if round.Get("summary").Kind() == jsonscan.String || round.Get("compaction").Kind() == jsonscan.Object {
		t.Lose("the history was summarized")
	}
	text := t.Words(round, "response", "/toolCallRounds")
	m := rollout.Message{Role: rollout.RoleAssistant, Content: text}
	if thought := round.Get("thinking"); thought.Kind() == jsonscan.Object {
		s, ok := format.Thinking(thought.Get("text"))
		if m.Reasoning = s; !ok {
			t.In.NoteRedacted(len(t.Rollout.Messages))
		}
	}
	for _, c := range round.Get("toolCalls").Items() {
		m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("arguments")))
	}
	if cut {
		t.Cut[len(t.Rollout.Messages)] = "the request was stopped or failed"
	}
	t.Say(m)
	for _, c := range m.ToolCalls {
		result := results.Get(c.ID)
		if result.Kind() != jsonscan.Object {
			t.Lose("the result of a call is not recorded")
			continue
		}
		s, exact := resultText(result)
		if !exact {
			t.Lose("a result is no text")
		}
		t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: c.ID, Content: s})
	}
	if n, _ := round.Get("toolInputRetry").Int(); n > 0 {
		t.Lose("a call was asked for again")
	}
	if round.Get("hookContext").Kind() == jsonscan.String {
		t.Lose("a hook told the model something")
	}
}

// renderedText returns the text of rendered parts (type 1); exact is false if there are
// others.
func renderedText(v format.Value) (text string, exact bool) {
	var b strings.Builder
	for _, p := range v.Items() {
		s, ok := p.Get("text").Text()
		if n, _ := p.Get("type").Int(); !ok || n != 1 {
			if n == 3 { // a cache breakpoint
				continue
			}
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), v.Len() > 0
}

// resultText returns the texts of a result; exact is false if it has other parts (render
// trees).
func resultText(v format.Value) (text string, exact bool) {
	var texts []string
	exact = true
	for _, p := range v.Get("content").Items() {
		s, ok := p.Get("value").Text()
		if !ok {
			exact = false
			continue
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, ""), exact && v.Get("content").Kind() == jsonscan.Array
}

// copilotShown adds the reply of a request without rounds from what the user was shown,
// which is the reply only if it is nothing but text.
func copilotShown(t *thread.Thread, response format.Value, cut bool) {
	var text strings.Builder
	why := ""
	for _, p := range response.Items() {
		s, ok := p.Get("value").Text()
		if kind := p.Get("kind"); !ok || !kind.IsNull() && !kind.Is("markdownContent") {
			why = "what was shown is not what was said"
			continue
		}
		text.WriteString(s)
	}
	if cut {
		why = "the request was stopped or failed"
	}
	if text.Len() == 0 {
		t.Lose("a reply is not recorded")
		return
	}
	if why != "" {
		t.Cut[len(t.Rollout.Messages)] = why
		t.Lose(why)
	}
	t.Text(rollout.RoleAssistant, text.String())
}
