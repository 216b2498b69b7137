package render

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// System is a system whose way of passing messages to the template is taken: see
// tokenize.Options.PromptsBy.
type System uint8

const (
	byRecord System = iota
	byVLLM
	bySGLang
	byTransformers

	systems
)

// systemNames are the names as records write them.
var systemNames = [systems]string{"record", "vllm", "sglang", "transformers"}

// SystemNamed returns the system of that name, byRecord for any other name.
func SystemNamed(name string) System { return System(max(slices.Index(systemNames[:], name), 0)) }

// of returns the system whose prompts r holds.
func (p System) of(r *rollout.Rollout) System {
	if p != byRecord {
		return p
	}
	if len(r.Metadata) == 0 {
		return byVLLM
	}
	var engine, model string
	_ = json.Unmarshal(r.Metadata["engine"], &engine) // anything but a string names none
	_ = json.Unmarshal(r.Metadata["model"], &model)
	provider, _, served := strings.Cut(model, "/")
	if engine == "" && served {
		engine = strings.TrimPrefix(provider, "hosted_")
	}
	for by, name := range systemNames {
		if by > int(byRecord) && strings.EqualFold(engine, name) {
			return System(by)
		}
	}
	return byVLLM
}

// between returns the text between two joined text parts.
func (p System) between() string {
	switch p {
	case byVLLM:
		return "\n"
	case bySGLang:
		return " "
	}
	return ""
}

// textParts returns the content passed to the template for several text parts. Those of tool
// results are joined even if the template takes lists, as in the engines.
func (s *shape) textParts(m *rollout.Message) chat.Value {
	joins := m.Role == rollout.RoleTool && s.by != byTransformers
	if !joins && s.takesList(s.by, m.Role) {
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

// text returns the content passed to the template for one text.
func (s *shape) text(content string) chat.Value {
	if s.partsOnly() {
		return chat.List(textPart(chat.String(content)))
	}
	return chat.String(content)
}

func textPart(text chat.Value) chat.Value {
	return chat.Object(chat.Member{Key: "type", Value: chat.String("text")}, chat.Member{Key: "text", Value: text})
}

// Jinja statements: an assignment of (part of) a list, a loop over (part of) one, and a loop over a
// message's content.
var (
	assignment  = regexp.MustCompile(`\{%[-+]?\s*set\s+(\w+)\s*=\s*(\w+)\s*(?:\[[^\]]*:[^\]]*\]|\|[^%]*|is\s[^%]*)?\s*[-+]?%\}`)
	loop        = regexp.MustCompile(`\{%[-+]?\s*for\s+(\w+)\s+in\s+(\w+)\s*(?:\[[^\]]*:[^\]]*\]\s*)?(?:\|[^%]*)?(?:\sif\s[^%]*)?(?:\srecursive\s*)?[-+]?%\}`)
	contentLoop = regexp.MustCompile(`\{%[-+]?\s*for\s+\w+\s+in\s+(\w+)\s*(?:\.\s*content\b|\[\s*["']content["']\s*\])`)
)

// listsOf returns which systems pass several text parts to a template as a list: those that find a
// loop over a message's content in it (vLLM's _detect_content_format in vllm/renderers/hf.py,
// SGLang's detect_jinja_template_content_format in jinja_template_utils.py), and transformers
// always.
func listsOf(source string) (lists [systems]bool) {
	messages, message := map[string]bool{"messages": true}, map[string]bool{}
	for grown := true; grown; { // a name may be assigned before the list it comes from
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
		lists[byVLLM] = lists[byVLLM] || message[l[1]]
		lists[bySGLang] = lists[bySGLang] || l[1] == "message" || l[1] == "msg" || l[1] == "m"
	}
	for _, media := range []string{"image", "audio", "video", "vision"} {
		lists[bySGLang] = lists[bySGLang] || strings.Contains(source, media)
	}
	lists[byTransformers] = true
	return lists
}
