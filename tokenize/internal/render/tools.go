package render

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// toolsValue returns the list of tools in the form that templates see, null for none.
func toolsValue(tools []rollout.Tool) (chat.Value, error) {
	if len(tools) == 0 {
		return chat.Null(), nil
	}
	values := make([]chat.Value, len(tools))
	for i, raw := range tools {
		v, err := chat.ParseJSON(raw)
		if err != nil {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tools"}, "tool %d is not JSON: %w", i, err)
		}
		values[i] = v
	}
	return chat.Recorded("tools", chat.List(values...)), nil
}
