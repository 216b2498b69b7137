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

// TestMarksOfBeginnings: for a model that marks the beginning of a text or section, no mark is
// added where a conversation is cut for encoding, so every row has the ids of its text encoded at
// once.
func TestMarksOfBeginnings(t *testing.T) {
	definition, err := os.ReadFile(kit.Dir(t, "conformance", "tokenizers", "tiny_spm.tokenizer.json"))
	require.NoError(t, err)
	definitions := map[string][]byte{"Prepend": definition}
	for _, scheme := range []string{"first", "always", "never"} {
		definitions[scheme] = kit.WithMetaspace(t, definition, scheme)
	}
	const config = `{"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"}`
	texts := []string{"<s>[INST] one [/INST] two words</s>", "[INST] three [/INST] four</s>"}
	r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: two words", "user: three", "assistant: four"), Turns: []rollout.Turn{{Message: 1}, {Message: 3}}}
	for name, data := range definitions {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: data}, "tokenizer_config.json": {Data: []byte(config)}}})
		require.NoError(t, err)
		for _, o := range []tokenize.Options{{Mode: tokenize.Merged}, {Mode: tokenize.PerStep}, {Mode: tokenize.Whole}, {Mode: tokenize.Whole, Edges: "document"}} {
			seqs := encode(t, m, o, r)
			require.Equal(t, plainIDs(t, m, texts[0]+texts[1], nil), seqs[len(seqs)-1].IDs, "%s, %+v", name, o)
			if o.Mode == tokenize.PerStep {
				require.Equal(t, plainIDs(t, m, texts[0], nil), seqs[0].IDs, name)
			}
		}
	}
}
