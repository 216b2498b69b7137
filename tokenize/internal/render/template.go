package render

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Template is a chat template with the form in which it takes messages. What its source does not
// show is found by rendering probe conversations, once, when a rollout first needs it. It is safe
// for concurrent use.
type Template struct {
	Chat  *chat.Template
	names map[string]string // texts of tokens by variable (eos_token)
	added []engine.AddedToken
	Shape shape

	mu       sync.Mutex
	limitErr error // error of the first probe that hit a limit
}

// shape is the form in which a template takes messages.
type shape struct {
	// by is the system whose prompts are rendered, never byRecord.
	by System
	// Forms returns how the template writes the arguments of tool calls.
	Forms func() argumentForms
	// partsOnly reports whether content must be a list of one text part, since the template would
	// leave a plain string out.
	partsOnly func() bool
	// takesList reports whether the system passes several text parts of a message of the role as a
	// list, and the template writes them.
	takesList func(by System, role rollout.Role) bool
	// reasoning says that the template reads the key reasoning, which is then passed too, as
	// engines do (vLLM beside reasoning_content); transformers passes only the other names.
	reasoning bool
	// source is the template's text: recorded keys without a meaning here are passed if it names
	// them.
	source string
}

// readsReasoning matches the key reasoning in a template, as an attribute or as a string.
var readsReasoning = regexp.MustCompile(`\.\s*reasoning\b|["']reasoning["']`)

// NewTemplate returns a Template for a compiled template, the folder's named tokens and its added
// tokens.
func NewTemplate(t *chat.Template, names map[string]string, added []engine.AddedToken) *Template {
	out := &Template{Chat: t, names: names, added: added}
	source := t.Source()
	listers := sync.OnceValue(func() [systems]bool { return listsOf(source) })
	listed := sync.OnceValue(out.listedRoles)
	out.Shape = shape{
		source: source, reasoning: readsReasoning.MatchString(source),
		partsOnly: sync.OnceValue(out.writesPartsOnly), Forms: sync.OnceValue(out.argumentForms),
		takesList: func(by System, role rollout.Role) bool {
			if !listers()[by] {
				return false
			}
			if writes, probed := listed()[role]; probed {
				return writes
			}
			return listed()[rollout.RoleUser]
		},
	}
	return out
}

// Limit returns the error of the first probe that hit a limit of the template, nil if none did.
func (t *Template) Limit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limitErr
}

// recordLimit records that a probe hit a limit: no other is rendered, since each would take as long.
func (t *Template) recordLimit(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limitErr == nil {
		t.limitErr = err
	}
}

// probeShape returns a shape that renders no probes itself.
func probeShape() shape {
	return shape{
		partsOnly: func() bool { return false }, Forms: func() argumentForms { return argumentForms{} },
		takesList: func(System, rollout.Role) bool { return false },
	}
}

// renderProbe returns the template's text for messages, with tools and prompts by vLLM; "" if the
// template rejects them.
func (t *Template) renderProbe(s shape, messages ...rollout.Message) string {
	x, err := newAs(context.Background(), t, s, &rollout.Rollout{Messages: messages, Tools: ProbeTools}, Options{Probe: true})
	if err != nil {
		return ""
	}
	out, err := x.Run(x.All, x.Index, false)
	if err != nil {
		return ""
	}
	return out.Text
}

const probeText = "PROBETEXT"

func (t *Template) writesPartsOnly() bool {
	if strings.Contains(t.renderProbe(probeShape(), User(probeText)), probeText) {
		return false
	}
	parts := probeShape()
	parts.partsOnly = func() bool { return true }
	return strings.Contains(t.renderProbe(parts, User(probeText)), probeText)
}

// listedRoles reports for which roles the template writes several text parts.
func (t *Template) listedRoles() map[rollout.Role]bool {
	listed := map[rollout.Role]bool{}
	as := probeShape()
	as.source, as.reasoning, as.partsOnly = t.Shape.source, t.Shape.reasoning, t.Shape.partsOnly
	as.takesList = func(System, rollout.Role) bool { return true }
	for _, role := range []rollout.Role{rollout.RoleSystem, rollout.RoleUser, rollout.RoleAssistant} {
		list := rollout.Message{Role: role, Content: "PROBEONEPROBETWO", Parts: []rollout.Part{{Type: "text", Text: "PROBEONE"}, {Type: "text", Text: "PROBETWO"}}}
		messages := []rollout.Message{list, User("x")}
		if role == rollout.RoleAssistant {
			slices.Reverse(messages)
		}
		written := t.renderProbe(as, messages...)
		listed[role] = strings.Contains(written, "PROBEONE") && strings.Contains(written, "PROBETWO") && !strings.Contains(written, "'PROBEONE'")
	}
	return listed
}

// argumentForms renders a call whose arguments are given in either form.
func (t *Template) argumentForms() argumentForms {
	call := Calling("", "c00000001")
	call.ToolCalls[0].Arguments = `{"command": "` + probeText + `"}`
	form := func(by argumentForm) string {
		as := probeShape()
		as.partsOnly = t.Shape.partsOnly
		as.Forms = func() argumentForms { return argumentForms{Give: by} }
		return t.renderProbe(as, User("x"), call, Answering("c00000001", "ok"))
	}
	return formsOf(form(asObject), form(AsText))
}

// namesToken reports whether a template variable is the text of a token (eos_token) and nothing
// else.
func (t *Template) namesToken(key string, value json.RawMessage) bool {
	var text string
	return strings.HasSuffix(key, "_token") && json.Unmarshal(value, &text) == nil &&
		slices.ContainsFunc(t.added, func(a engine.AddedToken) bool { return a.Content == text })
}
