package chats_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/chats"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

func sample() *rollout.Rollout {
	solved, reward := true, 0.5
	return &rollout.Rollout{ID: "a", Instance: "i", Tools: []rollout.Tool{rollout.Tool(`{"type":"function","function":{"name":"f"}}`)},
		Messages: []rollout.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "q \"é\"\n"},
			{Role: "assistant", Content: "look", Reasoning: "hm", Sampled: rollout.SampledByPolicy, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "f", Arguments: `{"x":1}`}}},
			{Role: "tool", ToolCallID: "c", Content: "r"}, {Role: "assistant", Content: "done", Sampled: rollout.SampledByPolicy}},
		Turns: []rollout.Turn{{Message: 2}, {Message: 4, Step: 1}}, Outcome: rollout.Outcome{Resolved: &solved, Reward: &reward}}
}

// In both layouts, chats are read back as written.
func TestSetsAreReadAgain(t *testing.T) {
	for layout, format := range map[string]string{"openai": "openai-chat", "sharegpt": "sharegpt"} {
		var b bytes.Buffer
		w, err := chats.NewWriter(&b, layout)
		require.NoError(t, err)
		bare := &rollout.Rollout{ID: "b", Messages: sample().Messages[:2]}
		for _, r := range []*rollout.Rollout{sample(), bare} {
			_, err = w.Write(r)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		path := filepath.Join(t.TempDir(), "set.parquet")
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
		r, err := traj.Open([]string{path}, traj.Options{OnError: rollout.OnErrorStop})
		require.NoError(t, err)
		var all []*rollout.Rollout
		for x, err := range r.All() {
			require.NoError(t, err)
			all = append(all, x)
		}
		require.Len(t, all, 2)
		got, second := all[0], all[1]
		require.Equal(t, format, got.Origin.Format)
		want := sample()
		require.Len(t, got.Messages, len(want.Messages))
		for i, m := range want.Messages {
			g := got.Messages[i]
			require.Equal(t, m.Role, g.Role)
			require.Equal(t, m.Content, g.Content)
			require.Equal(t, m.Reasoning, g.Reasoning)
			require.Len(t, g.ToolCalls, len(m.ToolCalls))
			for k, c := range m.ToolCalls {
				require.Equal(t, c.Name, g.ToolCalls[k].Name)
				require.JSONEq(t, c.Arguments, g.ToolCalls[k].Arguments)
			}
		}
		require.Len(t, got.Tools, 1)
		require.True(t, *got.Outcome.Resolved)
		require.Equal(t, 0.5, *got.Outcome.Reward)
		require.Equal(t, "b", second.ID)
		require.Len(t, second.Messages, 2)
		require.Nil(t, second.Tools)
		require.Nil(t, second.Outcome.Reward)
	}
}

func TestRefused(t *testing.T) {
	_, err := chats.NewWriter(&bytes.Buffer{}, "lists")
	require.ErrorContains(t, err, "expected openai or sharegpt")
	w, err := chats.NewWriter(&bytes.Buffer{}, "sharegpt")
	require.NoError(t, err)
	_, err = w.Write(&rollout.Rollout{ID: "a", Messages: []rollout.Message{{Role: "wizard", Content: "x"}}})
	require.ErrorContains(t, err, `no speaker for the role "wizard"`)
	_, err = w.Write(nil)
	require.Error(t, err)
}

// The columns of a chat are lists of structures, as data set readers expect. Missing members of
// a message are null, and the row reader leaves them out.
func TestRowsAreStructures(t *testing.T) {
	parts := sample()
	parts.ID, parts.Messages[1] = "c", rollout.Message{Role: rollout.RoleUser, Parts: []rollout.Part{{Type: "text", Text: "q"}, {Type: "text", Text: "r"}}}
	parts.Messages[4].ToolCalls = []rollout.ToolCall{{Name: "g", Arguments: "{ \"a\": 1}"}, {Name: "h", Arguments: "broken", ArgumentsText: true}}
	parts.Messages[4].NoContent, parts.Messages[4].Content = true, ""
	rows := map[string][]string{
		"openai": {`{"role":"user","content":"qr"}`,
			`{"role":"assistant","content":null,"tool_calls":[` +
				`{"type":"function","function":{"name":"g","arguments":"{ \"a\": 1}"}},{"type":"function","function":{"name":"h","arguments":"broken"}}]}`},
		"sharegpt": {`{"from":"human","value":"qr"}`, `{"from":"observation","value":"r"}`,
			`{"from":"function_call","value":"[{\"name\": \"g\", \"arguments\": { \"a\": 1}}, {\"name\": \"h\", \"arguments\": \"broken\"}]"}`},
	}
	for layout, want := range rows {
		var b bytes.Buffer
		w, err := chats.NewWriter(&b, layout)
		require.NoError(t, err)
		notes, err := w.Write(parts)
		require.NoError(t, err)
		require.Equal(t, "parts_joined", notes[0].Code)
		image := &rollout.Rollout{Messages: []rollout.Message{{Role: rollout.RoleUser, Parts: []rollout.Part{{Type: "image", Raw: []byte(`{"type":"image"}`)}}}}}
		_, err = w.Write(image) // leaves nothing in the file
		require.ErrorContains(t, err, `the part of type "image"`)
		_, err = w.Write(&rollout.Rollout{ID: "none"})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		f, err := pqread.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
		require.NoError(t, err)
		read := pqread.NewRows(f, 1<<20)
		text, err := read.Next()
		require.NoError(t, err)
		for _, x := range want {
			require.Contains(t, string(text), x)
		}
		text, err = read.Next()
		require.NoError(t, err)
		require.Contains(t, string(text), `[]`)
	}
}

func ExampleWriter() {
	var file bytes.Buffer
	w, err := chats.NewWriter(&file, "sharegpt")
	if err != nil {
		panic(err)
	}
	notes, err := w.Write(&rollout.Rollout{ID: "a", Messages: []rollout.Message{{Role: "user", Content: "hi"}, {Role: "assistant", Content: "hello", Sampled: rollout.SampledOtherAgent}}})
	if err == nil {
		err = w.Close()
	}
	fmt.Println(notes[0].Code, err, string(file.Bytes()[:4]))
	// Output: sampled_mark <nil> PAR1
}
