package frameworks

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// vercelUI reads the UI messages of the Vercel AI SDK: lists of parts, in which step-start
// begins each reply.
func vercelUI() []format.Importer {
	return thread.Dialect{Name: "vercel-ai", Is: isUIMessage, Add: addUIMessage, List: "messages"}.Importers()
}

// vercel reads the model messages of the Vercel AI SDK.
func vercel() []format.Importer {
	return thread.Dialect{Name: "vercel-ai", Is: isModelMessage, Add: addModelMessage, List: "messages"}.Importers()
}

func isUIMessage(v format.Value) bool {
	if v.Get("role").Kind() != jsonscan.String || v.Get("parts").Kind() != jsonscan.Array {
		return false
	}
	p := v.Get("parts").First()
	return p.Get("type").Kind() == jsonscan.String
}

func addUIMessage(t *thread.Thread, v format.Value) {
	role := t.Speaker(v.Get("role").Word())
	if role != rollout.RoleAssistant {
		var texts []string
		for _, p := range t.Items(v, "parts", "") {
			if kind := p.Get("type").Word(); kind == "text" {
				texts = append(texts, t.Words(p, "text", "/parts"))
			} else if !strings.HasPrefix(kind, "data-") { // not sent
				t.Unknown("/parts", kind)
			}
		}
		t.SayTexts(rollout.Message{Role: role}, texts)
		return
	}
	s := thread.NewSteps(t)
	for _, p := range t.Items(v, "parts", "") {
		kind := p.Get("type").Word()
		if p.Get("state").Is("streaming") || p.Get("state").Is("input-streaming") {
			s.Cut = "the reply was not whole when it was kept"
		}
		if p.Get("providerExecuted").True() {
			t.Unknown("/parts/providerExecuted", kind)
		}
		switch {
		case kind == "step-start":
			s.Flush("")
		case kind == "text" || kind == "reasoning":
			s.Write(t.Words(p, "text", "/parts"), kind == "reasoning")
		case kind == "dynamic-tool" || strings.HasPrefix(kind, "tool-") && kind != "tool-invocation":
			name := strings.TrimPrefix(kind, "tool-")
			if kind == "dynamic-tool" {
				name = p.Get("toolName").Word()
			}
			result, input := p.Get("output"), p.Get("input")
			if p.Get("state").Is("output-error") {
				if result = p.Get("errorText"); input.IsNull() {
					input = p.Get("rawInput")
				}
			}
			if approved, said := p.Path("approval", "approved").Bool(); said && !approved {
				s.Lost = "that a call was denied was shown in words that are not recorded"
			}
			t.Need(p.Get("toolCallId"), jsonscan.String, "/parts/toolCallId", "the id of a call")
			s.Call(t.Call(p.Get("toolCallId").String(), name, input), result)
		case kind == "tool-invocation": // version 4
			x := p.Get("toolInvocation")
			s.Call(t.Call(x.Get("toolCallId").String(), x.Get("toolName").Word(), x.Get("args")), x.Get("result"))
		case strings.HasPrefix(kind, "data-") || strings.HasPrefix(kind, "source"): // shown to the user
		default:
			t.Unknown("/parts", kind)
		}
	}
	s.Flush("")
}

// modelParts are types of parts that occur only in messages of the SDK.
var modelParts = []string{"tool-call", "tool-result", "reasoning"}

func isModelMessage(v format.Value) bool {
	for _, p := range v.Get("content").Items() {
		if slices.Contains(modelParts, p.Get("type").String()) && (p.Get("toolName").Kind() == jsonscan.String || p.Get("type").Is("reasoning") && p.Get("text").Kind() == jsonscan.String) {
			return true
		}
	}
	return false
}

func addModelMessage(t *thread.Thread, v format.Value) {
	role := t.Speaker(v.Get("role").Word())
	m := rollout.Message{Role: role}
	if s, ok := v.Get("content").Text(); ok {
		m.Content = s
		t.Say(m)
		return
	}
	said := role != rollout.RoleTool
	var texts []string
	for _, p := range t.Items(v, "content", "") {
		if p.Get("providerExecuted").True() {
			t.Unknown("/content/providerExecuted", p.Get("type").Word())
		}
		switch kind := p.Get("type").Word(); kind {
		case "text":
			texts, said = append(texts, t.Words(p, "text", "/content")), true
		case "reasoning":
			m.Reasoning += t.Words(p, "text", "/content")
		case "tool-approval-request", "tool-approval-response": // between the client and the user
		case "redacted-reasoning":
			t.In.NoteRedacted(len(t.Rollout.Messages))
		case "tool-call":
			input := p.Get("input")
			if input.Kind() == jsonscan.Absent {
				input = p.Get("args") // version 4
			}
			m.ToolCalls = append(m.ToolCalls, t.Call(p.Get("toolCallId").String(), p.Get("toolName").Word(), input))
		case "tool-result":
			modelResult(t, p)
		default:
			t.Unknown("/content", kind)
		}
	}
	switch {
	case role == rollout.RoleUser:
		t.SayTexts(m, texts)
	case said:
		m.Content = strings.Join(texts, "")
		t.Say(m)
	}
}

func modelResult(t *thread.Thread, p format.Value) {
	id, out := p.Get("toolCallId").String(), p.Get("output")
	if out.Kind() == jsonscan.Absent {
		t.Result(id, p.Get("result")) // version 4
		return
	}
	switch kind := out.Get("type").Word(); kind {
	case "text", "json", "error-text", "error-json":
		t.Result(id, out.Get("value"))
	case "content":
		var texts []string
		for _, x := range out.Get("value").Items() {
			if !x.Get("type").Is("text") {
				t.Unknown("/content/output", x.Get("type").String())
			}
			texts = append(texts, x.Get("text").String())
		}
		t.Say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: strings.Join(texts, "")})
	case "execution-denied":
		t.Result(id, out.Get("reason"))
		t.Lose("that a call was denied was shown in words that are not recorded")
	default:
		t.Unknown("/content/output", kind)
	}
}
