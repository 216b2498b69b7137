package frameworks

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// pydantic reads the messages of pydantic-ai, as ModelMessagesTypeAdapter writes them.
func pydantic() []format.Importer {
	return dialect{name: "pydantic-ai", is: isPydantic, add: addPydantic, list: "messages"}.importers()
}

func isPydantic(v format.Value) bool {
	kind := v.Get("kind")
	if !kind.Is("request") && !kind.Is("response") || v.Get("parts").Kind() != jsonscan.Array {
		return false
	}
	for _, first := range v.Get("parts").Items() {
		return first.Get("part_kind").Kind() == jsonscan.String
	}
	return true
}

func addPydantic(t *thread, v format.Value) error {
	if v.Get("kind").Is("response") {
		return pydanticReply(t, v)
	}
	if s := v.Get("instructions").String(); s != "" {
		switch {
		case len(t.r.Messages) == 0:
			t.text(rollout.RoleSystem, s)
		case t.r.Messages[0].Role != rollout.RoleSystem || !strings.Contains(t.r.Messages[0].Content, s):
			t.lose("the instructions change")
		}
	}
	for _, p := range v.Get("parts").Items() {
		body := p.Get("content")
		switch kind := p.Get("part_kind").Word(); kind {
		case "system-prompt":
			t.text(rollout.RoleSystem, body.String())
		case "user-prompt":
			m := rollout.Message{Role: rollout.RoleUser}
			for _, x := range body.Items() {
				if x.Kind() != jsonscan.String {
					return t.unknown("/parts/content", x.Get("kind").String())
				}
			}
			if err := t.in.Content(&m, body, len(t.r.Messages)); err != nil {
				return err
			}
			t.say(m)
		case "tool-return":
			t.result(p.Get("tool_call_id").String(), body)
		case "retry-prompt":
			// The words around it are the library's, and differ by version.
			if p.Get("tool_name").IsNull() {
				t.text(rollout.RoleUser, format.PlainText(body))
			} else {
				t.result(p.Get("tool_call_id").String(), body)
			}
			t.lose("a prompt to try again was shown in words that are not recorded")
		default:
			return t.unknown("/parts", kind)
		}
	}
	return nil
}

func pydanticReply(t *thread, v format.Value) error {
	m := rollout.Message{Role: rollout.RoleAssistant}
	var texts, thoughts []string
	for _, p := range v.Get("parts").Items() {
		switch kind := p.Get("part_kind").Word(); kind {
		case "text":
			texts = append(texts, p.Get("content").String())
		case "thinking":
			if s := p.Get("content").String(); s != "" {
				thoughts = append(thoughts, s)
			} else {
				t.in.NoteRedacted(len(t.r.Messages))
			}
		case "tool-call":
			m.ToolCalls = append(m.ToolCalls, call(p.Get("tool_call_id").String(), p.Get("tool_name").Word(), p.Get("args")))
		default:
			return t.unknown("/parts", kind)
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, "\n\n"), strings.Join(thoughts, "\n")
	t.end(v.Get("finish_reason").String())
	t.say(m)
	return nil
}
