package tokenize

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// PromptsBy names the system that made the prompts of the rollouts, whose way of
// handing messages to the chat template is taken. They differ in two things:
//
//   - The arguments of a tool call: vLLM and SGLang parse the JSON text of the wire,
//     so that the template sees an object; transformers hands on what is recorded,
//     which most templates escape once more where it is text.
//   - Several text parts of one message: vLLM joins them with a line feed, SGLang with
//     a space, unless the template loops over the parts itself; transformers never
//     joins them.
//
// What the policy sampled is the same for all of them: a reply of several text parts
// is trained without anything between them.
type PromptsBy uint8

// The systems.
const (
	// PromptsByRecord takes the system that the rollout names: metadata "engine"
	// ("vllm", "sglang", "transformers"), or a "model" as LiteLLM writes it
	// ("hosted_vllm/…"). It is vLLM where neither says so.
	PromptsByRecord PromptsBy = iota
	PromptsByVLLM
	PromptsBySGLang
	// PromptsByTransformers is apply_chat_template with the messages as recorded.
	PromptsByTransformers

	promptsByCount
)

var promptsByNames = []string{"record", "vllm", "sglang", "transformers"}

// String returns the name used on command lines.
func (p PromptsBy) String() string { return nameOf(promptsByNames, int(p)) }

// ParsePromptsBy reads a name that String wrote.
func ParsePromptsBy(s string) (PromptsBy, error) {
	return parseName[PromptsBy](promptsByNames, s, "prompts by")
}

// of is the system whose prompts r holds.
func (p PromptsBy) of(r *rollout.Rollout) PromptsBy {
	if p != PromptsByRecord {
		return p
	}
	var engine, model string
	_ = json.Unmarshal(r.Metadata["engine"], &engine) // anything but a text names none
	_ = json.Unmarshal(r.Metadata["model"], &model)
	provider, _, served := strings.Cut(model, "/")
	if engine == "" && served {
		engine = strings.TrimPrefix(provider, "hosted_")
	}
	for by := PromptsByVLLM; by < promptsByCount; by++ {
		if strings.EqualFold(engine, by.String()) {
			return by
		}
	}
	return PromptsByVLLM
}

// between is what stands between two text parts that are joined.
func (p PromptsBy) between() string {
	switch p {
	case PromptsByVLLM:
		return "\n"
	case PromptsBySGLang:
		return " "
	}
	return ""
}

// textParts is the content that the template is given for several text parts.
// Results are joined even where the template takes lists, as the engines do.
func (s *shape) textParts(m *rollout.Message) chat.Value {
	joins := m.Role == rollout.RoleTool && s.by != PromptsByTransformers
	role := m.Role
	if _, probed := s.listed[role]; !probed {
		role = rollout.RoleUser
	}
	if !joins && s.lists[s.by] && s.listed[role] {
		list := make([]chat.Value, len(m.Parts))
		for i, p := range m.Parts {
			list[i] = textPart(chat.String(p.Text))
		}
		return chat.List(list...)
	}
	texts := make([]string, len(m.Parts))
	for i, p := range m.Parts {
		texts[i] = p.Text
	}
	return s.text(strings.Join(texts, s.by.between()))
}

// text is the content that the template is given for one text.
func (s *shape) text(content string) chat.Value {
	if s.parts {
		return chat.List(textPart(chat.String(content)))
	}
	return chat.String(content)
}

func textPart(text chat.Value) chat.Value {
	return chat.Object(chat.Member{Key: "type", Value: chat.String("text")}, chat.Member{Key: "text", Value: text})
}

// Loops of Jinja over the messages, over a part of them and over a content.
var (
	assignment  = regexp.MustCompile(`\{%[-+]?\s*set\s+(\w+)\s*=\s*(\w+)\s*(?:\[[^\]]*:[^\]]*\]|\|[^%]*|is\s[^%]*)?\s*[-+]?%\}`)
	loop        = regexp.MustCompile(`\{%[-+]?\s*for\s+(\w+)\s+in\s+(\w+)\s*(?:\[[^\]]*:[^\]]*\]\s*)?(?:\|[^%]*)?(?:\sif\s[^%]*)?(?:\srecursive\s*)?[-+]?%\}`)
	contentLoop = regexp.MustCompile(`\{%[-+]?\s*for\s+\w+\s+in\s+(\w+)\s*(?:\.\s*content\b|\[\s*["']content["']\s*\])`)
)

// listsOf tells which systems give a template several text parts as a list: those that
// see it loop over a message's content (vLLM's _detect_content_format in
// vllm/renderers/hf.py, SGLang's detect_jinja_template_content_format in
// jinja_template_utils.py), and transformers always.
func listsOf(source string) (lists [promptsByCount]bool) {
	messages, message := map[string]bool{"messages": true}, map[string]bool{}
	for grown := true; grown; { // a name may be assigned before the one that it stands for
		grown = false
		for _, a := range assignment.FindAllStringSubmatch(source, -1) {
			if messages[a[2]] && !messages[a[1]] {
				messages[a[1]], grown = true, true
			}
		}
	}
	for _, l := range loop.FindAllStringSubmatch(source, -1) {
		if messages[l[2]] {
			message[l[1]] = true
		}
	}
	for _, l := range contentLoop.FindAllStringSubmatch(source, -1) {
		lists[PromptsByVLLM] = lists[PromptsByVLLM] || message[l[1]]
		lists[PromptsBySGLang] = lists[PromptsBySGLang] || l[1] == "message" || l[1] == "msg" || l[1] == "m"
	}
	for _, media := range []string{"image", "audio", "video", "vision"} {
		lists[PromptsBySGLang] = lists[PromptsBySGLang] || strings.Contains(source, media)
	}
	lists[PromptsByTransformers] = true
	return lists
}
