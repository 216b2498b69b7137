package frameworks

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// vercelUI reads the messages that the Vercel AI SDK shows: lists of parts, of which a
// step-start begins each reply.
func vercelUI() []format.Importer {
	return dialect{name: "vercel-ai", is: isUIMessage, add: addUIMessage, list: "messages"}.importers()
}

// vercel reads the messages that the Vercel AI SDK sends.
func vercel() []format.Importer {
	return dialect{name: "vercel-ai", is: isModelMessage, add: addModelMessage, list: "messages"}.importers()
}

func isUIMessage(v format.Value) bool {
	if v.Get("role").Kind() != jsonscan.String || v.Get("parts").Kind() != jsonscan.Array {
		return false
	}
	for _, p := range v.Get("parts").Items() {
		return p.Get("type").Kind() == jsonscan.String
	}
	return false
}

// steps are the replies of one message: the client writes what a model said in several
// calls into one.
type steps struct {
	t       *thread
	m       rollout.Message
	results []rollout.Message
	said    bool
}

func newSteps(t *thread) *steps {
	return &steps{t: t, m: rollout.Message{Role: rollout.RoleAssistant}}
}

// flush ends a reply: it, and the results of its calls.
func (s *steps) flush(end string) {
	if s.said {
		s.t.end(end)
		s.t.say(s.m)
		for _, r := range s.results {
			s.t.say(r)
		}
	}
	*s = *newSteps(s.t)
}

// write adds text, which begins a new reply where calls were answered before it.
func (s *steps) write(text string, reasoning bool) {
	if len(s.results) > 0 {
		s.flush("")
	}
	s.said = true
	if reasoning {
		s.m.Reasoning += text
	} else {
		s.m.Content += text
	}
}

// call adds a call, and its result where there is one.
func (s *steps) call(c rollout.ToolCall, result format.Value) {
	s.said = true
	s.m.ToolCalls = append(s.m.ToolCalls, c)
	if !result.IsNull() {
		s.results = append(s.results, rollout.Message{Role: rollout.RoleTool, ToolCallID: c.ID, Content: format.PlainText(result)})
	}
}

func addUIMessage(t *thread, v format.Value) error {
	role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
	if err != nil {
		return err
	}
	if role != rollout.RoleAssistant {
		var texts []string
		for _, p := range v.Get("parts").Items() {
			if kind := p.Get("type").Word(); kind == "text" {
				texts = append(texts, p.Get("text").String())
			} else if !strings.HasPrefix(kind, "data-") { // not sent
				return t.unknown("/parts", kind)
			}
		}
		t.text(role, strings.Join(texts, ""))
		return nil
	}
	s := newSteps(t)
	for _, p := range v.Get("parts").Items() {
		kind := p.Get("type").Word()
		switch {
		case kind == "step-start":
			s.flush("")
		case kind == "text" || kind == "reasoning":
			s.write(p.Get("text").String(), kind == "reasoning")
		case kind == "dynamic-tool" || strings.HasPrefix(kind, "tool-") && kind != "tool-invocation":
			name := strings.TrimPrefix(kind, "tool-")
			if kind == "dynamic-tool" {
				name = p.Get("toolName").Word()
			}
			result := p.Get("output")
			if result.IsNull() {
				result = p.Get("errorText")
			}
			s.call(call(p.Get("toolCallId").String(), name, p.Get("input")), result)
		case kind == "tool-invocation": // of version 4
			x := p.Get("toolInvocation")
			s.call(call(x.Get("toolCallId").String(), x.Get("toolName").Word(), x.Get("args")), x.Get("result"))
		case strings.HasPrefix(kind, "data-") || strings.HasPrefix(kind, "source"): // shown to the user
		default:
			return t.unknown("/parts", kind)
		}
	}
	s.flush("")
	return nil
}

// modelParts are the parts that only the messages of the SDK have.
var modelParts = []string{"tool-call", "tool-result", "reasoning"}

func isModelMessage(v format.Value) bool {
	for _, p := range v.Get("content").Items() {
		if slices.Contains(modelParts, p.Get("type").String()) && (p.Get("toolName").Kind() == jsonscan.String || p.Get("type").Is("reasoning") && p.Get("text").Kind() == jsonscan.String) {
			return true
		}
	}
	return false
}

func addModelMessage(t *thread, v format.Value) error {
	role, err := t.in.Speaker(v.Get("role").Word(), len(t.r.Messages), "/role")
	if err != nil {
		return err
	}
	m := rollout.Message{Role: role}
	if s, ok := v.Get("content").Text(); ok {
		m.Content = s
		t.say(m)
		return nil
	}
	said := role != rollout.RoleTool
	for _, p := range v.Get("content").Items() {
		switch kind := p.Get("type").Word(); kind {
		case "text":
			m.Content += p.Get("text").String()
			said = true
		case "reasoning":
			m.Reasoning += p.Get("text").String()
		case "redacted-reasoning":
			t.in.NoteRedacted(len(t.r.Messages))
		case "tool-call":
			input := p.Get("input")
			if input.Kind() == jsonscan.Absent {
				input = p.Get("args") // of version 4
			}
			m.ToolCalls = append(m.ToolCalls, call(p.Get("toolCallId").String(), p.Get("toolName").Word(), input))
		case "tool-result":
			if err := modelResult(t, p); err != nil {
				return err
			}
		default:
			return t.unknown("/content", kind)
		}
	}
	if said {
		t.say(m)
	}
	return nil
}

func modelResult(t *thread, p format.Value) error {
	id, out := p.Get("toolCallId").String(), p.Get("output")
	if out.Kind() == jsonscan.Absent {
		t.result(id, p.Get("result")) // of version 4
		return nil
	}
	switch kind := out.Get("type").Word(); kind {
	case "text", "json", "error-text", "error-json":
		t.result(id, out.Get("value"))
	case "content":
		var texts []string
		for _, x := range out.Get("value").Items() {
			if !x.Get("type").Is("text") {
				return t.unknown("/content/output", x.Get("type").String())
			}
			texts = append(texts, x.Get("text").String())
		}
		t.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: strings.Join(texts, "")})
	default:
		return t.unknown("/content/output", kind)
	}
	return nil
}

// openCode reads what opencode export prints: a session with its messages.
func openCode() format.Importer {
	return format.Importer{Name: "opencode", Match: isOpenCode, Read: readOpenCode, Stateless: true}
}

func isOpenCode(v format.Value, _ *format.File) bool {
	if v.Get("info").Kind() != jsonscan.Object || v.Get("messages").Kind() != jsonscan.Array {
		return false
	}
	for _, first := range v.Get("messages").Items() {
		return first.Path("info", "role").Kind() == jsonscan.String && first.Get("parts").Kind() == jsonscan.Array
	}
	return strings.HasPrefix(v.Path("info", "id").String(), "ses_")
}

func readOpenCode(in *format.File, v format.Value) error {
	t := newThread(in)
	t.r.ID = v.Path("info", "id").String()
	for _, x := range v.Get("messages").Items() {
		var err error
		if x.Path("info", "role").Is("assistant") {
			err = openCodeReply(t, x)
		} else {
			err = openCodePrompt(t, x)
		}
		if err != nil {
			return err
		}
	}
	return t.emit(true)
}

func openCodePrompt(t *thread, v format.Value) error {
	var texts []string
	for _, p := range v.Get("parts").Items() {
		switch kind := p.Get("type").Word(); kind {
		case "text":
			if ignored, _ := p.Get("ignored").Bool(); !ignored {
				texts = append(texts, p.Get("text").String())
			}
		case "file": // texts and folders are shown by parts of their own
			if mime := p.Get("mime"); !mime.Is("text/plain") && !mime.Is("application/x-directory") {
				return t.unknown("/parts/mime", mime.String())
			}
		case "compaction":
			t.lose("the session was compacted")
		case "agent", "snapshot", "patch":
		case "subtask":
			t.lose("a task was given to another agent")
		default:
			return t.unknown("/parts", kind)
		}
	}
	if texts != nil {
		t.text(rollout.RoleUser, strings.Join(texts, "\n"))
	}
	return nil
}

func openCodeReply(t *thread, v format.Value) error {
	if summary, _ := v.Path("info", "summary").Bool(); summary {
		t.lose("the session was compacted")
	}
	s := newSteps(t)
	for _, p := range v.Get("parts").Items() {
		switch kind := p.Get("type").Word(); kind {
		case "step-start":
			s.flush("")
		case "step-finish":
			s.flush(p.Get("reason").String())
		case "text", "reasoning":
			s.write(p.Get("text").String(), kind == "reasoning")
		case "tool":
			state := p.Get("state")
			result := state.Get("output")
			if state.Get("status").Is("error") {
				result = state.Get("error")
			}
			if state.Path("time", "compacted").Kind() == jsonscan.Number {
				t.lose("old results of tools were cleared")
			}
			s.call(call(p.Get("callID").String(), p.Get("tool").Word(), state.Get("input")), result)
		case "patch", "snapshot", "retry", "agent":
		case "compaction":
			t.lose("the session was compacted")
		default:
			return t.unknown("/parts", kind)
		}
	}
	s.flush("")
	return nil
}
