package tokenize_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// foreign is part of every name that does not belong to a reply's own text.
const foreign = "Qzj"

// named is a conversation whose names, tool names and ids come from fill; with odd also a role,
// which most templates reject.
func named(odd bool, fill func(benign string) string) *rollout.Rollout {
	tool := func(name string) rollout.Tool {
		b, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{"name": name, "description": "Runs.", "parameters": map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}}})
		if err != nil {
			panic(err)
		}
		return b
	}
	other := func(benign string) string { return fill(foreign + benign) }
	bash, first, second := fill("bash"), fill("c1"), fill("c2")
	say := func(content, reasoning string, calls ...rollout.ToolCall) rollout.Message {
		m := reply(reasoning, content, calls...)
		m.Name = other("bot")
		return m
	}
	critic := rollout.RoleUser
	if odd {
		critic = rollout.Role(other("critic"))
	}
	return &rollout.Rollout{ID: "named", Tools: []rollout.Tool{tool(bash)}, Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Name: other("sys"), Content: "Be brief."},
		{Role: rollout.RoleUser, Name: other("ann"), Content: "hi"},
		say("", "I look.", rollout.ToolCall{ID: first, Name: bash, Arguments: `{"command": "ls"}`}),
		{Role: rollout.RoleTool, Name: other("tool"), ToolCallID: first, Content: "a.txt"},
		say("So.", "", rollout.ToolCall{ID: second, Name: bash, Arguments: `{"command": "pwd"}`}),
		{Role: rollout.RoleTool, Name: bash, ToolCallID: second, Content: "/"},
		{Role: critic, Content: "hm"},
		say("done", ""),
	}}
}

// trainedTokens returns the text that each turn trains and the special tokens in it.
func trainedTokens(t *testing.T, m *tokenize.Model, mode tokenize.Mode, r *rollout.Rollout) (map[int32]string, map[int32][]rollout.TokenID, error) {
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
	require.NoError(t, err)
	seqs, _, err := enc.Encode(t.Context(), r)
	if err != nil {
		return nil, nil, err
	}
	special := map[rollout.TokenID]bool{}
	for _, a := range m.Tokenizer.Vocab().Added() {
		special[a.ID] = a.Special
	}
	found := map[int32][]rollout.TokenID{}
	for _, seq := range seqs {
		for i, id := range seq.IDs {
			if seq.Flags[i]&rollout.FlagSampled != 0 && special[id] {
				found[seq.Turn[i]] = append(found[seq.Turn[i]], id)
			}
		}
	}
	return byTurn(t, m, seqs), found, nil
}

// With any roles, names, tool names and ids, a reply trains the same control tokens as with
// harmless ones of the same shape, and no name of another message; or the rollout is rejected.
// TURNPACK_NAMES=full tries every template often.
func TestHostileNamesAreNotTrained(t *testing.T) {
	kit.OneGoroutine(t)
	seed, rounds := rand.Uint64(), 1
	full := os.Getenv("TURNPACK_NAMES") == "full"
	if full {
		rounds = 40
	}
	t.Logf("seed %d", seed)
	models, rng := templateModels(t), rand.New(rand.NewPCG(seed, 1))
	turns, refused, compared := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		if !full && rng.IntN(3) > 0 {
			continue
		}
		opening, err := m.GenerationPrompt(t.Context())
		require.NoError(t, err, name)
		parts := []string{"\n", "\n\n", "\r", " ", "assistant", "assistant\n", "user", "system", "tool", ": ", "\"", "'", "{", "}", "<", ">", "]", "\u2028", "é", "functions.", decode(t, m, opening)}
		for _, a := range m.Tokenizer.Vocab().Added() {
			if len(parts) < 60 || a.Special && len(parts) < 100 {
				parts = append(parts, a.Content)
			}
		}
		for range rounds {
			var texts []string
			odd := rng.IntN(4) == 0
			hostile := named(odd, func(benign string) string {
				var b strings.Builder
				for range rng.IntN(3) {
					b.WriteString(parts[rng.IntN(len(parts))])
				}
				texts = append(texts, b.String())
				if rng.IntN(2) == 0 {
					return benign + b.String()
				}
				return b.String() + benign
			})
			n := 0
			harmless := named(odd, func(benign string) string { n++; return stand(texts[n-1]) + benign })
			for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
				text, control, err := trainedTokens(t, m, mode, hostile)
				if err != nil {
					_, located := err.(*rollout.Error)
					require.True(t, located, "%s: %v", name, err)
					refused++
					continue
				}
				for turn, trained := range text {
					turns++
					require.NotContains(t, trained, foreign, "%s, %s, turn %d: %+q", name, mode, turn, texts)
					for i, id := range control[turn] {
						if m.IsStop(id) {
							require.Equal(t, len(control[turn])-1, i, "%s, %s, turn %d: a stop token inside %q: %+q", name, mode, turn, trained, texts)
						}
					}
				}
				if _, want, err := trainedTokens(t, m, mode, harmless); err == nil {
					compared++
					require.Equal(t, want, control, "%s, %s: %+q", name, mode, texts)
				}
			}
		}
	}
	t.Logf("%d turns trained, %d conversions compared, %d refused", turns, compared, refused)
	require.Greater(t, turns, 20)
}
