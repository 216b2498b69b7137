package render

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// toolbox holds the tools of the last rollout as templates see them: those of a batch
// mostly have the same.
type toolbox struct{ last atomic.Pointer[toolList] }

type toolList struct {
	raw   []rollout.Tool
	value chat.Value
}

// value is a list of tools as templates see it, null for none.
func (b *toolbox) value(tools []rollout.Tool) (chat.Value, error) {
	if len(tools) == 0 {
		return chat.Null(), nil
	}
	if l := b.last.Load(); l != nil && slices.EqualFunc(l.raw, tools, func(a, b rollout.Tool) bool { return bytes.Equal(a, b) }) {
		return l.value, nil
	}
	made := &toolList{raw: make([]rollout.Tool, len(tools))}
	values := make([]chat.Value, len(tools))
	for i, raw := range tools {
		v, err := chat.ParseJSON(raw)
		if err != nil {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tools"}, "tool %d is not JSON: %w", i, err)
		}
		made.raw[i], values[i] = bytes.Clone(raw), v
	}
	made.value = chat.Recorded("tools", chat.List(values...))
	b.last.Store(made)
	return made.value, nil
}
