package frameworks

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// pydantic reads the messages of pydantic-ai as written by ModelMessagesTypeAdapter.
func pydantic() []format.Importer {
	return thread.Dialect{Name: "pydantic-ai", Is: isPydantic, Add: addPydantic, List: "messages"}.Importers()
}

func isPydantic(v format.Value) bool {
	kind := v.Get("kind")
	if !kind.Is("request") && !kind.Is("response") || v.Get("parts").Kind() != jsonscan.Array {
		return false
	}
	return v.Get("parts").Len() == 0 || v.Get("parts").First().Get("part_kind").Kind() == jsonscan.String
}

func addPydantic(t *thread.Thread, v format.Value) {
	if v.Get("kind").Is("response") {
		pydanticReply(t, v)
		return
	}
	if s := v.Get("instructions").String(); s != "" {
		switch {
		case len(t.Rollout.Messages) == 0:
			t.Text(rollout.RoleSystem, s)
		case t.Rollout.Messages[0].Role != rollout.RoleSystem || !strings.Contains(t.Rollout.Messages[0].Content, s):
			t.Lose("the instructions change")
		}
	}
	for _, p := range t.Items(v, "parts", "") {
		body := p.Get("content")
		switch kind := p.Get("part_kind").Word(); kind {
		case "system-prompt":
			s := t.Words(p, "content", "/parts")
			if !v.Get("instructions").IsNull() {
				t.Lose("which of instructions and system prompt stands first depends on the version of the library")
			}
			t.Text(rollout.RoleSystem, s)
		case "user-prompt":
			m := rollout.Message{Role: rollout.RoleUser}
			if s, ok := body.Text(); ok {
				m.Content = s
				t.Say(m)
				break
			}
			t.Need(body, jsonscan.Array, "/parts/content", "a text or a list")
			var texts []string
			for _, x := range body.Items() {
				s, ok := x.Text()
				if !ok && x.Get("kind").Is("text-content") {
					s, ok = x.Get("content").Text()
				}
				if !ok && x.Get("kind").Is("cache-point") {
					continue
				}
				if !ok {
					t.Unknown("/parts/content", x.Get("kind").String())
				}
				texts = append(texts, s)
			}
			t.SayTexts(m, texts)
		case "tool-availability-delta":
			t.Lose("the tools change")
		case "tool-return":
			for _, x := range format.Elements(body) {
				if k := x.Get("kind"); x.Kind() == jsonscan.Object && k.Kind() == jsonscan.String && (k.Is("binary") || k.Is("uploaded-file") || strings.HasSuffix(k.String(), "-url")) {
					t.Unknown("/parts/content", k.String())
				}
			}
			t.Result(p.Get("tool_call_id").String(), body)
			if o := p.Get("outcome"); o.Is("failed") || o.Is("retried") {
				t.Lose("an error of a tool was shown in words that depend on the provider")
			}
		case "retry-prompt", "retry-feedback":
			// The library adds words around this text, which differ by version.
			if p.Get("tool_name").IsNull() {
				t.Text(rollout.RoleUser, format.PlainText(body))
			} else {
				t.Result(p.Get("tool_call_id").String(), body)
			}
			t.Lose("a prompt to try again was shown in words that are not recorded")
		default:
			t.Unknown("/parts", kind)
		}
	}
}

func pydanticReply(t *thread.Thread, v format.Value) {
	m := rollout.Message{Role: rollout.RoleAssistant}
	var texts, thoughts []string
	for _, p := range t.Items(v, "parts", "") {
		switch kind := p.Get("part_kind").Word(); kind {
		case "text":
			texts = append(texts, t.Words(p, "content", "/parts"))
		case "thinking":
			if s := p.Get("content").String(); s != "" {
				thoughts = append(thoughts, s)
			} else {
				t.In.NoteRedacted(len(t.Rollout.Messages))
			}
		case "tool-call":
			m.ToolCalls = append(m.ToolCalls, t.Call(p.Get("tool_call_id").String(), p.Get("tool_name").Word(), p.Get("args")))
		default:
			t.Unknown("/parts", kind)
		}
	}
	m.Content, m.Reasoning = strings.Join(texts, "\n\n"), strings.Join(thoughts, "\n")
	t.End(v.Get("finish_reason").String())
	if state := v.Get("state"); state.Kind() == jsonscan.String && !state.Is("complete") {
		t.Cut[len(t.Rollout.Messages)] = "the reply is " + state.String()
	}
	t.Say(m)
}
