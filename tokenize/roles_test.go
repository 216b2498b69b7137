package tokenize_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Templates may write a known role into a control token (<|{{ m.role }}|>). An unknown role makes
// none, nor does other text in its place.
func TestRolesInsideControlTokens(t *testing.T) {
	kit.OneGoroutine(t)
	tok, err := os.ReadFile("embedded/tokenizer.json")
	require.NoError(t, err)
	load := func(header string) *tokenize.Model {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{
			"tokenizer.json":        {Data: tok},
			"tokenizer_config.json": {Data: []byte(`{"eos_token":"<|im_end|>","additional_special_tokens":["<|user|>","<|assistant|>","<|TOOL|>"]}`)},
			"chat_template.jinja":   {Data: []byte("{% for m in messages %}" + header + "{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")},
		}})
		require.NoError(t, err)
		return m
	}
	for _, x := range []struct {
		reason, header string
		messages       []rollout.Message
		same           bool
	}{
		{"known roles", "<|{{ m.role }}|>", say("user: hi", "assistant: yes", "user: more", "assistant: so"), true},
		{"in capitals", "<|{{ m.role|upper }}|>", say("user: hi", "tool: result", "assistant: so"), true},
		{"a role that spells a token", "<|{{ m.role }}|>", say("user: hi", "im_start: more", "assistant: so"), false},
		{"text that spells a role", "<|{{ m.content }}|>", say("user: user", "assistant: yes"), false},
	} {
		m := load(x.header)
		r := &rollout.Rollout{Messages: x.messages, Turns: []rollout.Turn{{Message: len(x.messages) - 1}}}
		guard := encode(t, m, tokenize.Options{Mode: tokenize.Whole}, r)
		parity := encode(t, m, tokenize.Options{Mode: tokenize.Whole, Specials: "parity"}, r)
		require.Equal(t, x.same, len(guard[0].IDs) == len(parity[0].IDs), x.reason)
		if x.same {
			require.Equal(t, parity[0].IDs, guard[0].IDs, x.reason)
		}
	}
}
