package tokenize_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// field returns the recorded text of a message's field, by its path.
func field(t *testing.T, m *rollout.Message, place string) string {
	t.Helper()
	switch place {
	case "content", "content/0/text":
		return m.Content
	case "reasoning_content", "reasoning", "thinking":
		return m.Reasoning
	case "role":
		return string(m.Role)
	case "tool_call_id":
		return m.ToolCallID
	}
	parts := strings.Split(place, "/")
	require.Equal(t, "tool_calls", parts[0], place)
	call := m.ToolCalls[0]
	switch strings.Join(parts[2:], "/") {
	case "id":
		return call.ID
	case "type":
		return "function"
	case "function/name":
		return call.Name
	case "function/arguments":
		return call.Arguments
	case "function/arguments/command":
		var args struct{ Command string }
		require.NoError(t, json.Unmarshal([]byte(call.Arguments), &args))
		return args.Command
	}
	if key, ok := strings.CutSuffix(parts[len(parts)-1], "#key"); ok {
		return key
	}
	t.Fatalf("no field %q is known here", place)
	return ""
}

// Exact origins are the recorded bytes, for any template, and every text of a user has one.
func TestTexts(t *testing.T) {
	kit.OneGoroutine(t)
	models := map[string]*tokenize.Model{"embedded": embeddedModel(t), "plain ChatML": withTemplate(t, chatML)}
	t.Run("templates", func(t *testing.T) { maps.Copy(models, templateModels(t)) })
	told := 0
	for name, m := range models {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{
			{Role: rollout.RoleUser, Content: "Wie spät? \"jetzt\"\n漢字"},
			{Role: rollout.RoleAssistant, Reasoning: "hm", Content: "I look.", Sampled: rollout.SampledByPolicy,
				ToolCalls: []rollout.ToolCall{{ID: "c12345678", Name: "bash", Arguments: `{"command": "echo \"12\"\n"}`}}},
			{Role: rollout.RoleTool, ToolCallID: "c12345678", Content: "12"},
			{Role: rollout.RoleAssistant, Content: "Zwölf.", Sampled: rollout.SampledByPolicy},
		}}
		for turn := range 2 {
			prompt, reply, err := enc.Texts(t.Context(), r, turn)
			if err != nil {
				require.ErrorIs(t, err, rollout.KindTemplate, name) // the template has no tools, or no such roles
				continue
			}
			told++
			asked := 0
			for _, text := range []tokenize.Text{prompt, reply} {
				at := 0
				for _, o := range text.Origins {
					require.GreaterOrEqual(t, o.Start, at, "%s: in order, without overlap", name)
					at = o.End
					if !o.Exact || o.Message < 0 {
						continue
					}
					require.Equal(t, field(t, &r.Messages[o.Message], o.Field)[o.From:o.To], text.Text[o.Start:o.End], "%s: %s of message %d", name, o.Field, o.Message)
					if o.Message == 0 && o.Field != "role" {
						asked += o.To - o.From
					}
					cut := text.At(o.Start, o.Start+1)
					require.Len(t, cut, 1)
					require.Equal(t, o.From+1, cut[0].To)
				}
			}
			require.Equal(t, len(r.Messages[0].Content), asked, name)
			if turn == 1 {
				require.Contains(t, reply.Text, "Zwölf.", name)
			}
		}
		_, _, err = enc.Texts(t.Context(), r, 2)
		require.ErrorContains(t, err, "has 2")
	}
	require.GreaterOrEqual(t, told, len(models), "most templates take the conversation")
}
