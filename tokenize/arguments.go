package tokenize

import (
	"context"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// form is the shape in which tool-call arguments are passed to a template.
type form uint8

const (
	asRecorded form = iota
	asText
	asObject
)

// argumentsOf asks the template itself, with probes, which form it writes.
// Where it writes both or neither, arguments stay as recorded.
func argumentsOf(m *Model) form {
	if m.Template == nil {
		return asRecorded
	}
	const text = "PROBETEXT"
	call := calling("", "c00000001")
	call.ToolCalls[0].Arguments = `{"command": "` + text + `"}`
	messages := []rollout.Message{user("x"), call, answering("c00000001", "ok")}
	writes := func(a form) bool {
		probe := *m
		probe.arguments = a
		x, err := newRenderer(context.Background(), &probe, &rollout.Rollout{Messages: messages, Tools: probeTools}, nil, time.Time{})
		if err != nil {
			return false
		}
		doc, err := x.document()
		return err == nil && strings.Contains(doc.text, text)
	}
	switch object, plain := writes(asObject), writes(asText); {
	case object && !plain:
		return asObject
	case plain && !object:
		return asText
	}
	return asRecorded
}
