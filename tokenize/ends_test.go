package tokenize_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/kit/kitmodel"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// withStops is the folder of a template of the kit, with eos as the tokenizer's eos_token and a
// generation_config.json that lists stops, or without the file if stops is nil.
func withStops(t *testing.T, name, eos string, stops []rollout.TokenID) *tokenize.Model {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(kit.Templates(t), name+".jinja"))
	require.NoError(t, err)
	config, err := json.Marshal(map[string]any{"eos_token": eos, "bos_token": "<s>"})
	require.NoError(t, err)
	files := fstest.MapFS{"tokenizer.json": {Data: []byte("{}")}, "tokenizer_config.json": {Data: config}, "chat_template.jinja": {Data: source}}
	if stops != nil {
		generation, err := json.Marshal(map[string]any{"eos_token_id": stops})
		require.NoError(t, err)
		files["generation_config.json"] = &fstest.MapFile{Data: generation}
	}
	tok := templateModels(t)[name].Tokenizer
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files, Engine: func(string, []byte) (engine.Tokenizer, error) { return tok, nil }})
	require.NoError(t, err)
	return m
}

// replyRollouts returns rollouts that end with, and continue after, replies of every kind, with
// calls whose last bytes are the template's own ({} and "").
func replyRollouts() map[string]*rollout.Rollout {
	const a, b = "abcdef001", "abcdef002"
	tool := rollout.Tool(`{"type": "function", "function": {"name": "bash", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}}`)
	out := map[string]*rollout.Rollout{}
	for name, m := range map[string]rollout.Message{
		"text": reply("", "hello"), "reasoning": reply("I think.", "hello"),
		"call": reply("", "", call(a, `{"command": "ls"}`)), "no arguments": reply("", "", call(a, `{}`)),
		"empty argument": reply("", "", call(a, `{"command": ""}`)), "nested": reply("", "", call(a, `{"x": {"y": [1, {}]}}`)),
		"two calls": reply("I think.", "I look.", call(a, `{}`), call(b, `{"a": []}`)),
	} {
		r := &rollout.Rollout{ID: name, Messages: append(say("user: hi"), m)}
		next := say("user: more", "assistant: bye")
		if len(m.ToolCalls) > 0 {
			r.Tools, next = []rollout.Tool{tool}, nil
			for _, c := range m.ToolCalls {
				next = append(next, result(c.ID, "out"))
			}
			next = append(next, reply("", "bye"))
		}
		on := *r
		on.Messages = append(slices.Clip(r.Messages), next...)
		out[name], out[name+", then more"] = r, &on
	}
	return out
}

// A folder without generation_config.json names at most the tokenizer's eos_token, which may end
// none of the template's replies, or not those with calls. The rows are the same as with the file,
// and no reply is cut short.
func TestRepliesEndWithoutGenerationConfig(t *testing.T) {
	kit.OneGoroutine(t)
	for name, full := range templateModels(t) {
		fullBy := encoders(t, full)
		eos := []string{kitmodel.Stops(name)[0], "<|endoftext|>", ""}
		slices.Sort(eos)
		for _, eos := range slices.Compact(eos) {
			bare := withStops(t, name, eos, nil)
			bareBy := encoders(t, bare)
			for kind, r := range replyRollouts() {
				for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
					want, fault := repliesBy(t, fullBy[mode], full, r)
					got, bareFault := repliesBy(t, bareBy[mode], bare, r)
					require.Equal(t, fault, bareFault, "%s, eos %q, %s, %s", name, eos, kind, mode)
					require.Equal(t, want, got, "%s, eos %q, %s, %s", name, eos, kind, mode)
				}
			}
		}
	}
}

func repliesOf(t *testing.T, m *tokenize.Model, mode tokenize.Mode, r *rollout.Rollout) ([]string, string) {
	t.Helper()
	return repliesBy(t, encoders(t, m)[mode], m, r)
}

// encoders returns an encoder for each mode.
func encoders(t *testing.T, m *tokenize.Model) map[tokenize.Mode]*tokenize.Encoder {
	t.Helper()
	out := map[tokenize.Mode]*tokenize.Encoder{}
	for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
		require.NoError(t, err)
		out[mode] = enc
	}
	return out
}

func repliesBy(t *testing.T, enc *tokenize.Encoder, m *tokenize.Model, r *rollout.Rollout) ([]string, string) {
	t.Helper()
	seqs, fault := rowsBy(t, enc, r)
	var out []string
	for i := range seqs {
		out = append(out, sampled(t, m, &seqs[i])...)
	}
	return out, fault
}

// gpt-oss stops at <|return|> or <|call|>. If a folder names only one of them, as config.json of
// the published model does, calls are still complete.
func TestGPTOSSCallsAreWhole(t *testing.T) {
	id := func(text string) rollout.TokenID {
		return plainIDs(t, templateModels(t)["gptoss"], text, nil)[0]
	}
	const whole = " to=functions.bash<|channel|>commentary json<|message|>{}<|call|>"
	for note, m := range map[string]*tokenize.Model{
		"no generation_config.json": withStops(t, "gptoss", "<|return|>", nil),
		"<|return|> alone":          withStops(t, "gptoss", "<|return|>", []rollout.TokenID{id("<|return|>")}),
		"both":                      withStops(t, "gptoss", "<|return|>", []rollout.TokenID{id("<|return|>"), id("<|call|>")}),
	} {
		for name, want := range map[string][]string{"no arguments": {whole}, "no arguments, then more": {whole, "<|channel|>final<|message|>bye<|return|>"}} {
			for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged} {
				got, fault := repliesOf(t, m, mode, replyRollouts()[name])
				require.Empty(t, fault)
				require.Equal(t, want, got, "%s, %s, %s", note, name, mode)
			}
		}
		require.Equal(t, note != "<|return|> alone", m.IsStop(id("<|call|>")), note)
		require.False(t, m.IsStop(id("<|channel|>")), note)
		require.False(t, m.IsStop(id("<|end|>")), note)
	}
}

// A token between calls ends no reply, even though the template writes nothing after the last call.
func TestEndOfACallIsNoStop(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>{{ m.content }}{% for c in m.tool_calls or [] %}<|vision_start|>{{ c.function.arguments }}<|vision_end|>{% endfor %}
{% else %}<|im_start|>{{ m.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}`)
	r := &rollout.Rollout{ID: "r", Messages: append(say("user: hi"), reply("", "", call("a", `"x"`), call("b", `"y"`)))}
	for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
		got, fault := repliesOf(t, m, mode, r)
		require.Empty(t, fault)
		require.Len(t, got, 1)
		require.Contains(t, got[0], "y", mode)
		require.Contains(t, got[0][len(got[0])-len("<|vision_end|>")-2:], "<|vision_end|>", mode)
	}
}
