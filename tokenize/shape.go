package tokenize

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// shape is how a template takes messages, where templates differ.
type shape struct {
	arguments form
	// parts: content goes in as a list of one text part, since the template writes
	// those only and would leave a plain string out.
	parts bool
	// reasoning: it goes in as reasoning, too, a key that the template reads. Engines
	// pass it (vLLM beside reasoning_content); transformers makes only the other names.
	reasoning bool
	// source is the template's text: recorded keys without a meaning here are passed
	// if it names them.
	source string
}

// form is the shape in which tool-call arguments are passed to a template.
type form uint8

const (
	asRecorded form = iota
	asText
	asObject
)

// readsReasoning matches the key where a template reads it, as an attribute or by its
// name.
var readsReasoning = regexp.MustCompile(`\.\s*reasoning\b|["']reasoning["']`)

// shapeOf asks the template itself, with probes.
func shapeOf(m *Model) shape {
	var s shape
	if m.Template == nil {
		return s
	}
	s.source = m.Template.Source()
	s.reasoning = readsReasoning.MatchString(s.source)
	const text = "PROBETEXT"
	writes := func(s shape, messages ...rollout.Message) bool {
		probe := *m
		probe.shape = s
		x, err := newRenderer(context.Background(), &probe, &rollout.Rollout{Messages: messages, Tools: probeTools}, nil, time.Time{})
		if err != nil {
			return false
		}
		doc, err := x.document()
		return err == nil && strings.Contains(doc.text, text)
	}
	s.parts = !writes(shape{}, user(text)) && writes(shape{parts: true}, user(text))

	call := calling("", "c00000001")
	call.ToolCalls[0].Arguments = `{"command": "` + text + `"}`
	messages := []rollout.Message{user("x"), call, answering("c00000001", "ok")}
	object, plain := writes(shape{arguments: asObject, parts: s.parts}, messages...), writes(shape{arguments: asText, parts: s.parts}, messages...)
	switch { // where it writes both or neither, arguments stay as recorded
	case object && !plain:
		s.arguments = asObject
	case plain && !object:
		s.arguments = asText
	}
	return s
}
